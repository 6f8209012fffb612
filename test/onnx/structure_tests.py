# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How models are put together: functions, branches, sequences, defaults, order of
nodes, and what must be refused with which message."""

import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

from node_tests import difference, run_mtp

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def model(text, initializers=None, opset=18, ir=8, functions=()):
    """A model from ONNX's text form; `initializers` by name."""
    header = f'<ir_version: {ir}, opset_import: ["" : {opset}, "local" : 1]>'
    proto = parser.parse_model(header + text + "".join(functions))
    for name, value in (initializers or {}).items():
        proto.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return proto


class Runner:
    def __init__(self, mtp_run):
        self.mtp_run = mtp_run

    def outputs(self, proto, extra=(), **inputs):
        with tempfile.TemporaryDirectory() as folder:
            code, kind, message, outputs = run_mtp(self.mtp_run, proto, inputs, folder, extra)
        assert code == 0, f"exit {code} ({kind}): {message}"
        return outputs

    def gives(self, proto, expected, extra=(), **inputs):
        outputs = self.outputs(proto, extra, **inputs)
        for name, value in expected.items():
            wrong = difference(outputs.get(name), np.asarray(value), 1e-5, 1e-6)
            assert not wrong, f"output '{name}' {wrong}"

    def refuses(self, proto, kind, *parts, code=1, extra=(), **inputs):
        with tempfile.TemporaryDirectory() as folder:
            got, got_kind, message, _ = run_mtp(self.mtp_run, proto, inputs, folder, extra)
        assert got == code, f"exit {got} instead of {code}: {message}"
        assert got_kind == kind, f"kind '{got_kind}' instead of '{kind}': {message}"
        for part in parts:
            assert part in message, f"no '{part}' in: {message}"


x = np.arange(6, dtype=np.float32).reshape(2, 3)
# --- functions


@test
def functions_are_inlined_with_attributes(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = local.twice <k: float = 3.0> (x) }", functions=["""
<domain: "local", opset_import: ["" : 18, "local" : 1]> twice <k> (a) => (b) {
  f = Constant <value_float: float = @k> ()
  c = local.plus (a, f)
  b = local.plus (c, f)
}
<domain: "local", opset_import: ["" : 18]> plus (a, k) => (b) { b = Add (a, k) }
"""])
    run.gives(proto, {"y": x + 6}, x=x)


@test
def a_function_has_its_own_opset(run):
    # ReduceSum takes its axes as an attribute in opset 12.
    proto = model("main (float[2,3] x) => (float[2] y) { y = local.rows (x) }", functions=["""
<domain: "local", opset_import: ["" : 12]> rows (a) => (b) { b = ReduceSum <axes: ints = [1], keepdims: int = 0> (a) }
"""])
    run.gives(proto, {"y": x.sum(1)}, x=x)


@test
def a_function_that_calls_itself_is_refused(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = local.f (x) }", functions=["""
<domain: "local", opset_import: ["" : 18, "local" : 1]> f (a) => (b) { b = local.g (a) }
<domain: "local", opset_import: ["" : 18, "local" : 1]> g (a) => (b) { b = local.f (a) }
"""])
    run.refuses(proto, "input", "calls itself", x=x)


# --- branches


@test
def a_known_condition_chooses_a_branch(run):
    for flag, expected in ((True, x + 1), (False, x * 2)):
        proto = model("""main (float[2,3] x) => (float[2,3] y) {
          y = If (flag) <
            then_branch = a () => (float[2,3] t) { t = Add (x, one) },
            else_branch = b () => (float[2,3] e) { e = Mul (x, two) }>
        }""", {"flag": flag, "one": np.float32(1), "two": np.float32(2)})
        run.gives(proto, {"y": expected}, x=x)


@test
def a_condition_on_the_shape_is_known(run):
    proto = model("""main (float[n,3] x) => (float[n,3] y) {
      s = Shape (x)
      rows = Gather <axis: int = 0> (s, zero)
      many = Greater (rows, four)
      y = If (many) <
        then_branch = a () => (float[n,3] t) { t = Neg (x) },
        else_branch = b () => (float[n,3] e) { e = Identity (x) }>
    }""", {"zero": np.int64(0), "four": np.int64(4)})
    run.gives(proto, {"y": x}, x=x)
    big = np.ones((5, 3), np.float32)
    run.gives(proto, {"y": -big}, x=big)


@test
def a_condition_at_run_time_is_refused(run):
    proto = model("""main (float[2,3] x, bool flag) => (float[2,3] y) {
      y = If (flag) <then_branch = a () => (float[2,3] t) { t = Neg (x) },
                     else_branch = b () => (float[2,3] e) { e = Abs (x) }>
    }""")
    run.refuses(proto, "unsupported", "If", "known only at run time", x=x, flag=np.array(True))


# --- sequences


@test
def sequences_of_known_length(run):
    proto = model("""main (float[2,3] x) => (float[2] a, float[3,2] b, int64 n) {
      parts = SplitToSequence <axis: int = 1, keepdims: int = 0> (x)
      a = SequenceAt (parts, last)
      more = SequenceInsert (parts, a, zero)
      fewer = SequenceErase (more, zero)
      b = ConcatFromSequence <axis: int = 0, new_axis: int = 1> (fewer)
      n = SequenceLength (more)
    }""", {"last": np.int64(-1), "zero": np.int64(0)})
    run.gives(proto, {"a": x[:, 2], "b": x.T, "n": np.int64(4)}, x=x)


@test
def sequence_positions_are_checked(run):
    proto = model("""main (float[2,3] x) => (float[2] a) {
      parts = SplitToSequence <axis: int = 1, keepdims: int = 0> (x)
      a = SequenceAt (parts, k)
    }""", {"k": np.int64(3)})
    run.refuses(proto, "input", "axis 3", x=x)


# --- initializers


@test
def initializers_that_are_inputs_are_defaults(run):
    proto = model("main (float[2,3] x, float[3] w) => (float[2,3] y) { y = Add (x, w) }",
                  {"w": np.array([1, 2, 3], np.float32)})
    run.gives(proto, {"y": x + np.array([1, 2, 3], np.float32)}, x=x)
    other = np.array([7, 7, 7], np.float32)
    run.gives(proto, {"y": x + other}, x=x, w=other)


@test
def below_ir_4_they_are_constants(run):
    proto = model("main (float[2,3] x, int64[2] s) => (float[3,2] y) { y = Reshape (x, s) }",
                  {"s": np.array([3, 2])}, ir=3)
    run.gives(proto, {"y": x.reshape(3, 2)}, x=x)


@test
def an_identity_of_a_weight_is_the_weight(run):
    w = np.arange(300, dtype=np.float32)
    proto = model("main (float[300] x) => (float[300] y) { v = Identity (w) u = Identity (v) z = Add (x, u) y = Mul (z, w) }",
                  {"w": w})
    ones = np.ones(300, np.float32)
    run.gives(proto, {"y": (ones + w) * w}, x=ones)


@test
def an_output_may_be_an_input_or_a_weight(run):
    proto = model("main (float[2,3] x) => (float[2,3] y, float[2] w2, float[2,3] z) { y = Identity (x) w2 = Identity (w) z = Neg (x) }",
                  {"w": np.array([1, 2], np.float32)})
    run.gives(proto, {"y": x, "w2": np.array([1, 2], np.float32), "z": -x}, x=x)


@test
def shape_arithmetic_on_expressions_of_dims(run):
    proto = model("""main (float[b, s] x, float[b, "s + p"] m) => (float[b, n] y) {
      sx = Shape <start: int = 1> (x)
      sm = Shape <start: int = 1> (m)
      p = Sub (sm, sx)
      y = Slice (m, p, sm, one)
    }""".replace('"s + p"', "t"), {"one": np.array([1])})
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "s + p"
    m = np.arange(10, dtype=np.float32).reshape(2, 5)
    run.gives(proto, {"y": m[:, 2:]}, x=x, m=m)
    run.refuses(proto, "input", "'b' is 2", x=x, m=m[:1])


@test
def pads_and_parts_of_shapes_are_computed(run):
    # As the exporters write F.pad, and tf2onnx a Split of a shape.
    proto = model("""main (float[2,3] x) => (float[a,b] y, float[c,d] z) {
      m = Reshape (p, two)
      r = Slice (m, minus, low, zero, minus)
      t = Transpose <perm: ints = [1, 0]> (r)
      f = Reshape (t, flat)
      y = Pad (x, f)
      s = Shape (x)
      rows, columns = Split <axis: int = 0> (s)
      other = Concat <axis: int = 0> (columns, rows)
      z = Reshape (x, other)
    }""", {"p": np.array([1, 2, 0, 3]), "two": np.array([-1, 2]), "flat": np.array([-1]), "minus": np.array([-1]),
           "low": np.array([-(1 << 63)]), "zero": np.array([0])}, opset=17)
    run.gives(proto, {"y": np.pad(x, ((0, 3), (1, 2))), "z": x.reshape(3, 2)}, x=x)


@test
def writing_all_rows_is_the_update(run):
    proto = model("""main (float[2,3] x, float[2,3] u) => (float[2,3] y) {
      r = Range (zero, rows, one)
      i = Unsqueeze (r, last)
      y = ScatterND (x, i, u)
    }""", {"zero": np.int64(0), "rows": np.int64(2), "one": np.int64(1), "last": np.array([-1])})
    run.gives(proto, {"y": -x}, x=x, u=-x)


@test
def dims_without_a_value_are_asked_for(run):
    proto = model("main (float[batch, 3] x) => (float[batch, 3] y) { y = Neg (x) }")
    run.refuses(proto, "input", "input 'x'", "--dim batch=N")
    run.refuses(proto, "usage", "no input has a dimension of that name", code=2, extra=["--dim", "width=3"], x=x)


# --- order


@test
def nodes_may_come_in_any_order(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { a = Neg (x) y = Abs (a) }")
    proto.graph.node.insert(0, proto.graph.node.pop())
    run.gives(proto, {"y": np.abs(x)}, x=x)


@test
def a_cycle_is_refused(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { a = Add (x, b) b = Neg (a) y = Abs (b) }")
    run.refuses(proto, "input", "cycle", x=x)


@test
def names_that_are_produced_twice_are_refused(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { a = Neg (x) y = Abs (a) }")
    proto.graph.node[1].output[0] = "a"
    proto.graph.output[0].name = "a"
    run.refuses(proto, "input", "'a' is produced twice", x=x)
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = Neg (x) }", {"y": np.float32(1)})
    run.refuses(proto, "input", "is an input or initializer too", x=x)


@test
def missing_values_are_named(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = Add (x, ghost) }")
    run.refuses(proto, "input", "'ghost'", "is not produced", x=x)
    proto = model("main (float[2,3] x) => (float[2,3] y) { z = Neg (x) }")
    run.refuses(proto, "input", "output 'y' is not produced", x=x)


# --- reports


@test
def everything_unsupported_is_in_one_report(run):
    proto = model("""main (float[2,3] x) => (float[2,3] y) {
      a = Acosh (x)
      b = Acosh (a)
      c = Det (b)
      d = local.Mystery (x)
      e = NonZero (x)
      f = Dropout <surprise: int = 1> (x)
      g = Sum (c, d, f)
      h = Cast <to: int = 1> (e)
      y = Add (g, h)
    }""")
    run.refuses(proto, "unsupported", "6 unsupported nodes", "Acosh x 2", "Det x 1", "local.Mystery x 1",
                "domain 'local'", "NonZero x 1", "depends on data", "attribute 'surprise'", x=x)


@test
def what_no_output_needs_is_not_reported(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { a = Acosh (x) y = Neg (x) }")
    run.gives(proto, {"y": -x}, x=x)


@test
def a_shape_at_run_time_is_refused(run):
    proto = model("main (float[2,3] x, int64[2] s) => (float[a,b] y) { y = Reshape (x, s) }")
    run.refuses(proto, "unsupported", "the new shape (input 's')", "only at run time", x=x, s=np.array([3, 2]))


@test
def attributes_of_a_wrong_kind_are_refused(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = Softmax <axis: float = 1.0> (x) }")
    run.refuses(proto, "input", "attribute 'axis'", x=x)


@test
def shapes_that_do_not_fit_are_refused(run):
    for body, part in (("y = Reshape (x, s)", "cannot reshape [2, 3] to [4, 2]"),
                       ("y = Add (x, w)", "[2, 3] and [4]"), ("y = MatMul (x, x)", "sizes 3 and 2"),
                       ("y = Transpose <perm: ints = [0, 0]> (x)", "twice"),
                       ("y = Softmax <axis: int = 2> (x)", "axis 2"),
                       ("y = Concat <axis: int = 0> (x, w)", "rank"),
                       ("y = Expand (x, n)", "write 1"), ("y = Tile (x, huge)", "range"),
                       ("y = ConstantOfShape (huge)", "too large"), ("y = Gather (s, nine)", "index 9")):
        proto = model(f"main (float[2,3] x) => (float[a,b] y) {{ {body} }}",
                      {"s": np.array([4, 2]), "w": np.ones(4, np.float32), "n": np.array([-1, 3]),
                       "huge": np.array([1 << 62, 1 << 62]), "nine": np.int64(9)})
        run.refuses(proto, "input", part, x=x)


@test
def types_that_do_not_fit_are_refused(run):
    for body in ("y = Add (x, i)", "y = And (x, x)", "y = Not (x)", "y = Where (x, x, x)", "y = Gather (x, x)",
                 "y = MatMul (x, i)", "y = Concat <axis: int = 0> (x, i)", "y = Sqrt (i)", "y = Softmax (i)",
                 "y = Neg (b)", "y = Add (b, b)", "y = Less (b, b)", "y = Erf (i)", "y = LayerNormalization (x, i)",
                 "y = CumSum (b, zero)", "y = Pow (b, x)", "y = Clip (x, i)", "y = ReduceMean (b)", "y = IsNaN (i)"):
        proto = model(f"main (float[2,3] x) => (float[a,b] y) {{ {body} }}",
                      {"i": np.arange(500, dtype=np.int64).reshape(5, 100)[:2, :3].copy(), "b": np.ones((2, 3), bool), "zero": np.int64(0)})
        with tempfile.TemporaryDirectory() as folder:
            code, kind, message, _ = run_mtp(run.mtp_run, proto, {"x": x}, folder)
        assert code == 1 and kind in ("input", "unsupported"), f"{body}: exit {code} ({kind}): {message}"


@test
def inputs_must_fit(run):
    proto = model("main (float[2,3] x) => (float[2,3] y) { y = Neg (x) }")
    run.refuses(proto, "input", "'x'", x=x[:1])
    run.refuses(proto, "input", "'x'", x=x.astype(np.float64))
    run.refuses(proto, "input", "'z'", x=x, z=x)


@test
def double_precision_makes_every_float_double(run):
    proto = model("main (float[2,3] x, int64[3] i) => (float[2,3] y) { f = Cast <to: int = 1> (i) s = Sqrt (f) y = Add (x, s) }")
    y = run.outputs(proto, ["--precision", "f64"], x=x, i=np.array([2, 3, 5]))["y"]
    assert y.dtype == np.float64
    assert np.abs(y - (x.astype("f8") + np.sqrt(np.array([2.0, 3, 5])))).max() < 1e-15


def main():
    run, failed = Runner(sys.argv[1]), 0
    for function in TESTS:
        if len(sys.argv) > 2 and sys.argv[2] not in function.__name__:
            continue
        try:
            function(run)
        except Exception as problem:  # a failure of one test must not hide the others
            failed += 1
            print(f"FAILED {function.__name__}: {type(problem).__name__}: {problem}", flush=True)
    print(f"{len(TESTS)} tests of structure: {failed} FAILED")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

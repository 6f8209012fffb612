# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs an ONNX graph op by op in PyTorch, in float64, with gradients.

Only for making reference data (make_curves.py): the product and its tests need
no PyTorch. It has the operators of the models in test/models, each written
after the ONNX specification; every float tensor is computed in float64, Cast to
float included.
"""

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper


def to_torch(array):
    tensor = torch.from_numpy(np.array(array))
    return tensor.double() if tensor.is_floating_point() else tensor


def ints(tensor):
    return [int(v) for v in tensor.reshape(-1)]


def pair_broadcast(function):
    return lambda n, a, b: function(a, b)


class OnnxModule:
    """`parameters`: the initializers by name, leaf tensors if in `trainable`."""

    def __init__(self, path, trainable=()):
        model = onnx.load(path)
        self.graph = model.graph
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.parameters = {}
        for initializer in self.graph.initializer:
            tensor = to_torch(numpy_helper.to_array(initializer))
            if initializer.name in trainable:
                tensor = tensor.clone().requires_grad_(True)
            self.parameters[initializer.name] = tensor

    def __call__(self, inputs):
        values = dict(self.parameters)
        values[""] = None
        values.update({k: to_torch(v) for k, v in inputs.items()})
        self.run(self.graph, values)
        return {o.name: values[o.name] for o in self.graph.output}

    def run(self, graph, values):
        for node in graph.node:
            attributes = {
                a.name: onnx.helper.get_attribute_value(a) for a in node.attribute
            }
            arguments = [values[name] for name in node.input]
            function = self.functions.get((node.domain, node.op_type))
            if function:
                local = dict(zip(function.input, arguments))
                local[""] = None
                self.run(function, local)
                results = [local[name] for name in function.output]
            else:
                if node.op_type not in OPS:
                    raise NotImplementedError(f"{node.op_type} ({node.name})")
                results = OPS[node.op_type](Node(node, attributes), *arguments)
            if not isinstance(results, (list, tuple)) or node.op_type.startswith(
                "SplitToSequence"
            ):
                results = [results]
            values.update(zip(node.output, results))


class Node:
    def __init__(self, node, attributes):
        self.outputs = len(node.output)
        self.attributes = attributes

    def get(self, name, default=None):
        return self.attributes.get(name, default)


def cast(n, x, *_):
    kind = onnx.helper.tensor_dtype_to_np_dtype(n.get("to"))
    if np.issubdtype(kind, np.floating):
        return x.double()
    return x.to(getattr(torch, {"bool": "bool"}.get(kind.name, kind.name)))


def constant(n):
    for key in ("value_int", "value_ints", "value_float", "value_floats"):
        if n.get(key) is not None:
            return to_torch(np.array(n.get(key)))
    return to_torch(numpy_helper.to_array(n.get("value")))


def constant_of_shape(n, shape):
    value = n.get("value")
    value = to_torch(numpy_helper.to_array(value)) if value else torch.zeros(1).double()
    return value.reshape(()).expand(ints(shape)).clone()


def reshape(n, x, shape):
    dims = ints(shape)
    if not n.get("allowzero", 0):
        dims = [x.shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return x.reshape(dims)


def expand(n, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, ints(shape)))


def gather(n, data, indices):
    axis = n.get("axis", 0) % data.dim()
    indices = torch.where(indices < 0, indices + data.shape[axis], indices)
    flat = torch.index_select(data, axis, indices.reshape(-1))
    return flat.reshape(
        data.shape[:axis] + indices.shape + data.shape[axis + 1 :]
    )


def gather_nd(n, data, indices):
    batch = n.get("batch_dims", 0)
    assert batch == 0
    return data[tuple(indices.unbind(-1))]


def slice_(n, x, starts, ends, axes=None, steps=None):
    starts, ends = ints(starts), ints(ends)
    axes = ints(axes) if axes is not None else range(len(starts))
    steps = ints(steps) if steps is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        picked = range(x.shape[axis])[slice(start, end, step)]
        x = torch.index_select(x, axis, torch.tensor(list(picked), dtype=torch.int64))
    return x


def shape_(n, x):
    return torch.tensor(list(x.shape)[n.get("start", 0) : n.get("end", None)])


def split(n, x, sizes=None):
    axis = n.get("axis", 0)
    if sizes is not None:
        return torch.split(x, ints(sizes), axis)
    parts = n.get("num_outputs", n.outputs)
    return torch.split(x, -(-x.shape[axis] // parts), axis)


def split_to_sequence(n, x, sizes=None):
    axis = n.get("axis", 0)
    if sizes is None:
        return [p.squeeze(axis) for p in torch.split(x, 1, axis)]
    return list(torch.split(x, ints(sizes) if sizes.dim() else int(sizes), axis))


def squeeze(n, x, axes=None):
    if axes is None:
        return x.squeeze()
    for axis in sorted((a % x.dim() for a in ints(axes)), reverse=True):
        x = x.squeeze(axis)
    return x


def unsqueeze(n, x, axes):
    rank = x.dim() + axes.numel()
    for axis in sorted(a % rank for a in ints(axes)):
        x = x.unsqueeze(axis)
    return x


def gemm(n, a, b, c=None):
    a = a.T if n.get("transA", 0) else a
    b = b.T if n.get("transB", 0) else b
    y = n.get("alpha", 1.0) * (a @ b)
    return y if c is None else y + n.get("beta", 1.0) * c


def reduce_mean(n, x, axes=None):
    dims = ints(axes) if axes is not None else list(range(x.dim()))
    return x.mean(dims, keepdim=bool(n.get("keepdims", 1)))


def layer_norm(n, x, scale, bias=None):
    axis = n.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], scale, bias, n.get("epsilon", 1e-5))


def rms_norm(n, x, scale):
    square = x.pow(2).mean(-1, keepdim=True)
    return x * torch.rsqrt(square + n.get("epsilon", 1e-5)) * scale


def gelu(n, x):
    return F.gelu(x, approximate=(n.get("approximate") or b"none").decode())


def range_(n, start, limit, delta):
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


def conv(n, x, w, b=None):
    pads = n.get("pads") or [0] * 4
    assert pads[:2] == pads[2:] and w.dim() == 4
    return F.conv2d(
        x, w, b, n.get("strides") or 1, pads[:2], n.get("dilations") or 1,
        n.get("group", 1),
    )


def cumsum(n, x, axis):
    assert not n.get("exclusive", 0) and not n.get("reverse", 0)
    return x.cumsum(int(axis))


def concat(n, *tensors):
    return torch.cat(tensors, n.get("axis"))


def rotary(n, x, cos, sin, positions=None):
    assert x.dim() == 4 and not n.get("interleaved", 0)
    if positions is not None:
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def attention(n, q, k, v, mask=None, *_):
    three = q.dim() == 3
    if three:
        heads, kv = n.get("q_num_heads"), n.get("kv_num_heads")
        q = q.unflatten(-1, (heads, -1)).transpose(1, 2)
        k = k.unflatten(-1, (kv, -1)).transpose(1, 2)
        v = v.unflatten(-1, (kv, -1)).transpose(1, 2)
    y = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=bool(n.get("is_causal", 0)),
        scale=n.get("scale"), enable_gqa=q.shape[1] != k.shape[1],
    )
    return y.transpose(1, 2).flatten(2) if three else y


def unary(function):
    return lambda n, x: function(x)


def folded(function):
    def run(n, *tensors):
        result = tensors[0]
        for tensor in tensors[1:]:
            result = function(result, tensor)
        return result

    return run


def div(n, a, b):
    if a.is_floating_point():
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


OPS = {
    "Abs": unary(torch.abs), "Add": pair_broadcast(torch.add),
    "And": pair_broadcast(torch.logical_and), "Attention": attention,
    "Cast": cast, "CastLike": lambda n, x, like: x.to(like.dtype),
    "Concat": concat, "Constant": constant, "ConstantOfShape": constant_of_shape,
    "Conv": conv, "Cos": unary(torch.cos), "CumSum": cumsum, "Div": div,
    "Equal": pair_broadcast(torch.eq), "Expand": expand,
    "Flatten": lambda n, x: x.reshape(
        int(np.prod(x.shape[: n.get("axis", 1)])), -1),
    "Gather": gather, "GatherND": gather_nd, "Gelu": gelu, "Gemm": gemm,
    "Greater": pair_broadcast(torch.gt), "GreaterOrEqual": pair_broadcast(torch.ge),
    "Identity": unary(lambda x: x), "IsNaN": unary(torch.isnan),
    "LayerNormalization": layer_norm, "Less": pair_broadcast(torch.lt),
    "LessOrEqual": pair_broadcast(torch.le), "Log": unary(torch.log),
    "MatMul": pair_broadcast(torch.matmul), "Max": folded(torch.maximum),
    "Min": folded(torch.minimum), "Mul": pair_broadcast(torch.mul),
    "Neg": unary(torch.neg), "Not": unary(torch.logical_not),
    "Pow": pair_broadcast(torch.pow), "RMSNormalization": rms_norm,
    "Range": range_, "Reciprocal": unary(torch.reciprocal),
    "ReduceMean": reduce_mean, "Relu": unary(torch.relu), "Reshape": reshape,
    "RotaryEmbedding": rotary, "SequenceAt": lambda n, s, i: s[int(i)],
    "Shape": shape_, "Sigmoid": unary(torch.sigmoid), "Sin": unary(torch.sin),
    "Slice": slice_, "Softmax": lambda n, x: x.softmax(n.get("axis", -1)),
    "Split": split, "SplitToSequence": split_to_sequence, "Sqrt": unary(torch.sqrt),
    "Squeeze": squeeze, "Sub": pair_broadcast(torch.sub), "Tanh": unary(torch.tanh),
    "Transpose": lambda n, x: x.permute(
        n.get("perm") or list(reversed(range(x.dim())))),
    "Unsqueeze": unsqueeze, "Where": lambda n, c, a, b: torch.where(c, a, b),
}

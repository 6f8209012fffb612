# SPDX-FileCopyrightText: The mtp authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes model.onnx: a GPT-2 over bytes with fresh weights, exported by PyTorch.

    pip install torch transformers onnx onnxscript
    python export.py

The architecture is transformers' GPT-2 with a vocabulary of 256, hidden size
64, 4 heads, 2 layers and at most 128 positions; batch and sequence are dynamic.
The weights are those GPT-2 starts training with, seed 0; scales and biases get a
little noise, since the exporter makes one initializer of tensors that are equal.
"""

import pathlib

import onnx
import torch
import transformers

HERE = pathlib.Path(__file__).parent


class Logits(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def main():
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=256, n_positions=128, n_embd=64, n_layer=2, n_head=4,
        bos_token_id=0, eos_token_id=0, attn_implementation="eager",
    )
    model = Logits(transformers.GPT2LMHeadModel(config).eval())
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter += 0.01 * torch.randn_like(parameter)
    ids = torch.randint(0, 256, (2, 64))
    batch, sequence = torch.export.Dim("batch", min=1), torch.export.Dim("seq", min=2)
    path = HERE / "model.onnx"
    torch.onnx.export(
        model, (ids,), str(path), input_names=["input_ids"], output_names=["logits"],
        opset_version=20, dynamo=True, dynamic_shapes=({0: batch, 1: sequence},),
        external_data=False, verbose=False,
    )
    graph = onnx.load(path)
    for node in graph.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in graph.graph.value_info:
        del value.metadata_props[:]
    onnx.save(graph, path)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(graph.graph.node)} nodes")


if __name__ == "__main__":
    main()

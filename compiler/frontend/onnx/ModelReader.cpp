// SPDX-FileCopyrightText: The mtp authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- ModelReader.cpp - ModelProto to plain data -------------------------===//
#include "compiler/frontend/onnx/Model.h"
#include "compiler/frontend/onnx/OnnxError.h"
#include "compiler/frontend/onnx/Skeleton.h"
#include "compiler/frontend/onnx/TensorReader.h"

#include "onnx-ml.pb.h"

#include <cstring>
#include <google/protobuf/stubs/logging.h>
#include <set>

namespace mtp::onnx {

namespace {
constexpr int64_t kLeastIr = 3, kMostIr = 13;
constexpr int64_t kLeastOpset = 11, kMostOpset = 24;

bool isUtf8(const std::string &text) {
  const auto *p = reinterpret_cast<const unsigned char *>(text.data());
  const auto *end = p + text.size();
  while (p < end) {
    int more = *p < 0x80   ? 0
               : *p < 0xc2 ? -1
               : *p < 0xe0 ? 1
               : *p < 0xf0 ? 2
               : *p < 0xf5 ? 3
                           : -1;
    if (more < 0 || end - p <= more)
      return false;
    if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
        (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
      return false;
    for (int i = 1; i <= more; ++i)
      if ((p[i] & 0xc0) != 0x80)
        return false;
    p += more + 1;
  }
  return true;
}

const std::string &checked(const std::string &text) {
  if (!isUtf8(text) || text.find('\0') != std::string::npos)
    failInput("the model has a name that is not UTF-8 text");
  return text;
}

std::string domainOf(const std::string &domain) {
  return domain == "ai.onnx" ? "" : checked(domain);
}

class Reader {
public:
  Reader(std::shared_ptr<const MappedFile> file, const std::string &path)
      : tensors(std::move(file), path) {}

  void read(const ::onnx::ModelProto &proto, Model &model) {
    model.irVersion = proto.ir_version();
    if (!proto.has_ir_version())
      failInput("'" + model.path +
                "' is not an ONNX model: it has no ir_version");
    if (model.irVersion < kLeastIr || model.irVersion > kMostIr)
      failInput("'" + model.path + "' has IR version " +
                std::to_string(model.irVersion) + "; versions " +
                std::to_string(kLeastIr) + " to " + std::to_string(kMostIr) +
                " can be read");
    if (!proto.has_graph())
      failInput("'" + model.path + "' has no graph");
    readOpsets(proto.opset_import(), model.opsets);
    auto standard = model.opsets.find("");
    if (standard == model.opsets.end())
      failInput("'" + model.path +
                "' imports no version of the ONNX operators");
    checkOpset(standard->second, "the model");
    for (const auto &function : proto.functions())
      readFunction(function, model);
    readGraph(proto.graph(), model.graph, 0);
  }

private:
  static void checkOpset(int64_t version, const std::string &who) {
    if (version < kLeastOpset || version > kMostOpset)
      failInput(who + " imports opset " + std::to_string(version) +
                " of the ONNX operators; versions " +
                std::to_string(kLeastOpset) + " to " +
                std::to_string(kMostOpset) + " can be read");
  }

  template <typename Imports>
  static void readOpsets(const Imports &imports, OpsetMap &opsets) {
    for (const auto &import : imports) {
      auto [at, added] =
          opsets.emplace(domainOf(import.domain()), import.version());
      if (!added && at->second != import.version())
        failInput("domain '" + at->first + "' is imported in two versions, " +
                  std::to_string(at->second) + " and " +
                  std::to_string(import.version()));
    }
  }

  void readFunction(const ::onnx::FunctionProto &proto, Model &model) {
    Function function;
    function.domain = domainOf(proto.domain());
    function.name = checked(proto.name());
    function.overload = checked(proto.overload());
    for (const auto &name : proto.input())
      function.inputs.push_back(checked(name));
    for (const auto &name : proto.output())
      function.outputs.push_back(checked(name));
    for (const auto &name : proto.attribute())
      function.attributes.push_back(checked(name));
    for (const auto &attribute : proto.attribute_proto())
      addAttribute(attribute, function.defaults,
                   "function '" + function.name + "'", 0);
    readOpsets(proto.opset_import(), function.opsets);
    auto standard = function.opsets.find("");
    if (standard != function.opsets.end())
      checkOpset(standard->second, "function '" + function.name + "'");
    readNodes(proto.node(), function.nodes, 0);
    std::string key =
        functionKey(function.domain, function.name, function.overload);
    if (!model.functions.emplace(key, std::move(function)).second)
      failInput("function '" + key + "' is defined twice");
  }

  void readGraph(const ::onnx::GraphProto &proto, Graph &graph, int depth) {
    if (depth > 60)
      failInput("subgraphs are nested too deeply");
    graph.name = checked(proto.name());
    std::set<std::string> names;
    for (const auto &tensor : proto.initializer()) {
      checked(tensor.name());
      if (tensor.name().empty())
        failInput("an initializer has no name");
      if (!names.insert(tensor.name()).second)
        failInput("initializer '" + tensor.name() + "' is defined twice");
      graph.initializers.push_back(tensors.read(tensor));
    }
    for (const auto &tensor : proto.sparse_initializer())
      graph.sparseInitializers.push_back(checked(tensor.values().name()));
    names.clear();
    for (const auto &input : proto.input()) {
      ValueInfo info = readValue(input);
      if (info.name.empty())
        failInput("an input of graph '" + graph.name + "' has no name");
      if (!names.insert(info.name).second)
        failInput("input '" + info.name + "' is declared twice");
      graph.inputs.push_back(std::move(info));
    }
    for (const auto &output : proto.output())
      graph.outputs.push_back(checked(output.name()));
    readNodes(proto.node(), graph.nodes, depth);
  }

  template <typename Protos>
  void readNodes(const Protos &protos, std::vector<Node> &nodes, int depth) {
    for (const auto &proto : protos) {
      Node node;
      node.name = checked(proto.name());
      node.op = checked(proto.op_type());
      node.domain = domainOf(proto.domain());
      node.overload = checked(proto.overload());
      for (const auto &name : proto.input())
        node.inputs.push_back(checked(name));
      for (const auto &name : proto.output())
        node.outputs.push_back(checked(name));
      if (node.name.empty()) // exporters may leave it out; outputs are unique
        node.name = node.outputs.empty() ? node.op : node.outputs.front();
      if (node.op.empty())
        failInput("node '" + node.name + "' has no operator", {node.name});
      for (const auto &attribute : proto.attribute())
        addAttribute(attribute, node.attributes, "node '" + node.name + "'",
                     depth);
      nodes.push_back(std::move(node));
    }
  }

  void addAttribute(const ::onnx::AttributeProto &proto,
                    std::map<std::string, Attribute> &attributes,
                    const std::string &owner, int depth) {
    if (proto.name().empty())
      failInput("an attribute of " + owner + " has no name");
    if (!attributes.emplace(checked(proto.name()), readAttribute(proto, depth))
             .second)
      failInput("attribute '" + proto.name() + "' of " + owner +
                " is given twice");
  }

  Attribute readAttribute(const ::onnx::AttributeProto &proto, int depth) {
    using Proto = ::onnx::AttributeProto;
    Attribute result;
    if (!proto.ref_attr_name().empty()) {
      result.reference = checked(proto.ref_attr_name());
      return result;
    }
    auto kind = proto.type();
    if (kind == Proto::UNDEFINED) // IR versions below 4 may leave the type out
      kind = proto.has_f()          ? Proto::FLOAT
             : proto.has_i()        ? Proto::INT
             : proto.has_s()        ? Proto::STRING
             : proto.has_t()        ? Proto::TENSOR
             : proto.has_g()        ? Proto::GRAPH
             : proto.floats_size()  ? Proto::FLOATS
             : proto.strings_size() ? Proto::STRINGS
                                    : Proto::INTS;
    switch (kind) {
    case Proto::FLOAT:
      result.kind = Attribute::Kind::Float;
      result.f = proto.f();
      break;
    case Proto::INT:
      result.kind = Attribute::Kind::Int;
      result.i = proto.i();
      break;
    case Proto::STRING:
      result.kind = Attribute::Kind::String;
      result.s = proto.s();
      break;
    case Proto::FLOATS:
      result.kind = Attribute::Kind::Floats;
      result.floats.assign(proto.floats().begin(), proto.floats().end());
      break;
    case Proto::INTS:
      result.kind = Attribute::Kind::Ints;
      result.ints.assign(proto.ints().begin(), proto.ints().end());
      break;
    case Proto::STRINGS:
      result.kind = Attribute::Kind::Strings;
      result.strings.assign(proto.strings().begin(), proto.strings().end());
      break;
    case Proto::TENSOR:
      result.kind = Attribute::Kind::Tensor;
      result.tensor = std::make_shared<Tensor>(tensors.read(proto.t()));
      break;
    case Proto::GRAPH: {
      auto graph = std::make_shared<Graph>();
      readGraph(proto.g(), *graph, depth + 1);
      result.kind = Attribute::Kind::Graph;
      result.graph = std::move(graph);
      break;
    }
    default:
      result.kind = Attribute::Kind::Other;
    }
    return result;
  }

  static ValueInfo readValue(const ::onnx::ValueInfoProto &proto) {
    ValueInfo info;
    info.name = checked(proto.name());
    const ::onnx::TypeProto &type = proto.type();
    if (!type.has_tensor_type()) {
      info.foreignType = type.has_sequence_type()        ? "sequence"
                         : type.has_map_type()           ? "map"
                         : type.has_optional_type()      ? "optional"
                         : type.has_sparse_tensor_type() ? "sparse tensor"
                                                         : "undefined";
      return info;
    }
    int64_t element = type.tensor_type().elem_type();
    if (!dtypeOf(element, info.type))
      info.foreignType = foreignName(element);
    info.hasShape = type.tensor_type().has_shape();
    for (const auto &proto : type.tensor_type().shape().dim()) {
      Dim dim;
      if (proto.has_dim_value())
        dim.value = proto.dim_value();
      else if (proto.has_dim_param())
        dim.symbol = checked(proto.dim_param());
      if (dim.value && *dim.value < 0) // written by old exporters for "unknown"
        dim.value.reset();
      info.dims.push_back(std::move(dim));
    }
    return info;
  }

  TensorReader tensors;
};

/// Files that people pass by mistake get a message of their own.
void refuseOtherFormats(const MappedFile &file) {
  const std::string &path = file.path();
  if (file.size() == 0)
    failInput("'" + path + "' is empty");
  std::string head(reinterpret_cast<const char *>(file.data()),
                   std::min<uint64_t>(file.size(), 512));
  if (head.rfind("version https://git-lfs", 0) == 0)
    failInput("'" + path +
              "' is a pointer of Git LFS, not the model; fetch the "
              "file with 'git lfs pull'");
  if (head.rfind("PK\x03\x04", 0) == 0)
    failInput("'" + path + "' is a zip archive, not an ONNX model");
  bool isText = true;
  for (unsigned char c : head)
    isText &= c >= 0x20 ? c != 0x7f : c == '\n' || c == '\r' || c == '\t';
  if (isText)
    failInput("'" + path + "' is a text file, not an ONNX model");
}
} // namespace

std::string functionKey(const std::string &domain, const std::string &name,
                        const std::string &overload) {
  return domain + "::" + name + (overload.empty() ? "" : ":" + overload);
}

Model readModel(const std::string &path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  refuseOtherFormats(*file);
  std::string skeleton, error;
  if (!makeSkeleton(file->data(), file->size(), skeleton, error))
    failInput("'" + path + "' is truncated or not an ONNX model: " + error);
  if (skeleton.size() >= (uint64_t(1) << 31))
    failInput("'" + path + "' has more than 2 GiB beside its tensors");
  google::protobuf::LogSilencer quiet;
  ::onnx::ModelProto proto;
  if (!proto.ParseFromArray(skeleton.data(), static_cast<int>(skeleton.size())))
    failInput("'" + path +
              "' is not an ONNX model: its protobuf message is damaged");
  skeleton = {};
  Model model;
  model.path = path;
  Reader(file, path).read(proto, model);
  return model;
}

} // namespace mtp::onnx

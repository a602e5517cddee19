// JSON Schemas (draft 2020-12) of documents, from what is declared. A number that is none is written as null, so that a
// null may stand for any; keys that are not declared may be there, because new ones may appear at any time.
#include <map>

#include "result/document.h"
#include "result/json.h"

namespace llmperf::result {
namespace {

class SchemaWriter {
 public:
  std::string write(const Documented& d) {
    Json json = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", d.title},
                 {"description", "what `" + std::string(d.command) + "` writes"}};
    Json object = object_of(d.type());
    Json& properties = object["properties"];
    properties["schema"] = {{"const", schema_of(d)}};
    properties["schema_version"] = {{"const", 1}};
    properties["tool"] = {{"type", "object"}, {"required", {"name", "version"}}};
    properties["command"] = {{"type", "string"}, {"description", "that made the document"}};
    for (const char* key : {"schema", "schema_version", "tool"}) object["required"].push_back(key);
    json.update(object);
    if (!definitions_.empty()) json["$defs"] = definitions_;
    return dump(json);
  }

 private:
  // "llmperf.estimate" of "llmperf.estimate of a video model".
  static std::string schema_of(const Documented& d) { return std::string(d.title.substr(0, d.title.find(' '))); }

  Json object_of(const Type& type) {
    Json properties = Json::object();
    Json required = Json::array();
    add_keys(type, true, properties, required);
    Json object = {{"type", "object"}, {"properties", std::move(properties)}};
    if (!required.empty()) object["required"] = std::move(required);
    return object;
  }
  void add_keys(const Type& type, bool always, Json& properties, Json& required) {
    for (const Field& field : type.fields) {
      if (field.in == In::row) continue;
      const bool there = always && !field.left_out;
      if (field.spread) {
        add_keys(field.shape.type(), there, properties, required);
        continue;
      }
      const std::string key(field.key);
      properties[key] = value_of(field.shape, field.shape.lists);
      if (!field.doc.empty()) properties[key]["description"] = field.doc;
      if (there) required.push_back(key);
    }
  }

  Json value_of(const Shape& shape, int lists) {
    Json json;
    if (lists > 0) {
      json = {{"type", "array"}, {"items", value_of(shape, lists - 1)}};
    } else if (shape.map) {
      json = {{"type", "object"},
              {"additionalProperties", value_of({.kind = shape.kind, .nullable = shape.nulls, .type = shape.type}, 0)}};
    } else {
      switch (shape.kind) {
        case Kind::truth: json = {{"type", "boolean"}}; break;
        case Kind::integer: json = {{"type", "integer"}}; break;
        case Kind::number: json = {{"type", {"number", "null"}}}; return json;
        case Kind::text: json = {{"type", "string"}}; break;
        case Kind::any: return Json::object();
        case Kind::object: json = reference_or_object(shape.type()); break;
      }
    }
    if (!shape.nullable) return json;
    if (json.contains("type") && json.size() == 1) return {{"type", {json["type"], "null"}}};
    return {{"anyOf", {json, {{"type", "null"}}}}};
  }

  // What has a name of its own is defined once; it may be a part of itself.
  Json reference_or_object(const Type& type) {
    if (type.name.empty()) return object_of(type);
    const std::string name(type.name);
    if (!definitions_.contains(name)) {
      definitions_[name] = nullptr;
      Json object = object_of(type);
      if (!type.doc.empty()) object["description"] = type.doc;
      definitions_[name] = std::move(object);
    }
    return {{"$ref", "#/$defs/" + name}};
  }

  std::map<std::string, Json> definitions_;
};

}  // namespace

std::string schema(const Documented& documented) { return SchemaWriter().write(documented); }

std::string schema_file(const Documented& documented) {
  std::string name(documented.title);
  for (char& c : name) c = c == ' ' ? '_' : c;
  return name + ".schema.json";
}

}  // namespace llmperf::result

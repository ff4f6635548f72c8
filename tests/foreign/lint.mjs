// What redocly (recommended rules) and spectral (its OpenAPI rules) find wrong with the document at stdin's {path}: {tool: [problem]}.
import fs from "node:fs";
import redocly from "@redocly/openapi-core";
import spectralCore from "@stoplight/spectral-core";
import Parsers from "@stoplight/spectral-parsers";
import rulesets from "@stoplight/spectral-rulesets";

const { path } = JSON.parse(fs.readFileSync(0, "utf8"));

async function redoclyFinds() {
  const config = await redocly.createConfig({ extends: ["recommended"] });
  const problems = await redocly.lint({ ref: path, config });
  return problems.map((p) => `${p.severity} ${p.ruleId} at ${p.location[0].pointer}: ${p.message}`);
}

async function spectralFinds() {
  const spectral = new spectralCore.Spectral();
  spectral.setRuleset({ extends: [rulesets.oas] });
  const problems = await spectral.run(new spectralCore.Document(fs.readFileSync(path, "utf8"), Parsers.Yaml, path));
  return problems.map((p) => `${p.code} at ${p.path.join("/")}: ${p.message}`);
}

console.log(JSON.stringify({ redocly: await redoclyFinds(), spectral: await spectralFinds() }));

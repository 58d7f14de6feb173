import { startSpine, UNHURRIED, type Spine } from '../../../support/spine.ts';
import { type ScriptedVendor, startVendor } from './scene.ts';
import type { Vendor } from './vendors.ts';

/** The checkout, whose `node_modules` has the packages. A gateway finds them beside its own program. */
const SECRETS_OF_ALL = ['apiKey'];

export interface SdkWorld {
  readonly spine: Spine;
  readonly vendors: ReadonlyMap<string, ScriptedVendor>;
  stop(): Promise<void>;
}

/** A gateway that offers the models of these vendors through their packages: `openai/chat`, `openai/embed`, … */
export async function startSdkWorld(of: readonly Vendor[]): Promise<SdkWorld> {
  const stops: (() => void)[] = [];
  const vendors = new Map<string, ScriptedVendor>();
  const env: Record<string, string> = {};
  let toml = UNHURRIED;
  for (const vendor of of) {
    const scripted = await startVendor(vendor.answer, (stop) => void stops.push(stop));
    vendors.set(vendor.name, scripted);
    toml += blocksOf(vendor, scripted.url);
    for (const secret of vendor.secrets ?? SECRETS_OF_ALL) env[variableOf(secret)] = `${secret}-secret`;
  }
  const spine = await startSpine({ toml, env });
  return {
    spine,
    vendors,
    async stop() {
      await spine.stop();
      for (const stop of stops) stop();
    },
  };
}

const variableOf = (secret: string): string => `TEST_${secret.toUpperCase()}`;

/** Prices in USD per million tokens: 2 in, 0.5 from the cache, 4 into it, 10 out. A picture costs 0.04. */
function blocksOf(vendor: Vendor, url: string): string {
  const { name, sdk = `@ai-sdk/${name}`, settings, secrets = SECRETS_OF_ALL, models } = vendor;
  const given = Object.entries(settings(url)).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  const hidden = secrets.map((secret) => `${secret} = "std::env::${variableOf(secret)}"`);
  const runs = (model: string) => `model = "${model}"
sdk = "${sdk}"
sdk_settings = { ${given.join(', ')} }
sdk_secrets = { ${hidden.join(', ')} }
`;
  const block = (kind: string, model: string, more: string) => `
[[models]]
name = "${name}/${kind}"
provider_name = "${name}"
context_length = 100000
max_output_tokens = 4096
${more}
[models.pricing]
prompt = 2
completion = 10
input_cache_read = 0.5
input_cache_write = 4
[models.params]
${runs(model)}`;
  return [
    models.chat === null ? '' : block('chat', models.chat, 'input_modalities = ["text", "image"]'),
    models.embed === null ? '' : block('embed', models.embed, 'output_modalities = ["embeddings"]'),
    models.rerank === undefined
      ? ''
      : `
[[models]]
name = "${name}/rerank"
provider_name = "${name}"
output_modalities = ["rerank"]
pricing = { ${models.rerank.pricing} }
[models.params]
${runs(models.rerank.model)}`,
    models.paint === null
      ? ''
      : `
[[images]]
name = "${name}/paint"
provider_name = "${name}"
[images.pricing]
generation = 0.04
[images.params]
${runs(models.paint)}`,
  ].join('\n');
}

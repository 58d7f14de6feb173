import { onTestFinished } from 'vitest';
import { loadConfig } from '../../../src/server/config/file.ts';
import { type LastLists, offerModels } from '../../../src/providers/list-prices/offer-models.ts';
import { type ListingProvider, startListingProvider } from '../../support/listing-provider.ts';

const NOW = Date.parse('2026-11-26T12:00:00Z');
const ENV = {
  OPENAI_API_KEY: 'sk-openai',
  ANTHROPIC_API_KEY: 'sk-ant-1',
  GEMINI_API_KEY: 'AIza-1',
  AZURE_API_KEY: 'az',
  AWS_BEARER_TOKEN_BEDROCK: 'aws',
  OPENROUTER_API_KEY: 'or',
  MISTRAL_API_KEY: 'mi',
  TOGETHER_API_KEY: 'to',
  GROQ_API_KEY: 'gr',
  DEEPSEEK_API_KEY: 'de',
};

/** A provider that ends with its test. */
export async function startProvider(): Promise<ListingProvider> {
  const provider = await startListingProvider();
  onTestFinished(() => provider.stop());
  return provider;
}

/** A provider whose list has these items, or models of these names. */
export async function listing(items: readonly (string | object)[]): Promise<ListingProvider> {
  const provider = await startProvider();
  provider.list({ json: { data: items.map((one) => (typeof one === 'string' ? { id: one } : one)) } });
  return provider;
}

interface Offering {
  readonly ask?: boolean;
  readonly last?: LastLists;
}

/** The models of the first provider of a file, and the services that the file then has. */
export async function offer(text: string, { ask = true, last = new Map() }: Offering = {}) {
  const read = { file: 'x.toml', text, env: ENV, mode: 'production' as const };
  const [offers] = await offerModels(loadConfig(read).providers, { now: NOW, ask, last });
  const { services } = loadConfig({ ...read, offered: offers!.offered });
  return {
    ...offers!,
    names: offers!.offered.map(({ name }) => name),
    from: offers!.names,
    why: Object.fromEntries(offers!.withheld.map(({ name, why }) => [name, why])),
    services,
    service(name: string) {
      const found = services.find(({ service }) => service.name === name);
      if (found?.service.primitive !== 'model') throw new Error(`${name} is not offered`);
      return { ...found.service, target: found.target };
    },
  };
}
export const block = (use: string, url: string, more = '') =>
  `[[providers]]\nuse = "${use}"\napi_base = "${url}"\n${more}`;

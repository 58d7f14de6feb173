import { parseRates } from '#billing';
import type { ServiceConfig } from '#config';
import { askLocal, listLocal } from './ask-local.ts';
import { localImages, localModel } from './local-model.ts';

/* The models of OpenAI that are offered, with indicative prices for play money. Others are not offered. */

/** USD per 1M tokens of input and of output, and the context in tokens. */
const CHAT: Readonly<Record<string, readonly [prompt: string, completion: string, context: number]>> = {
  'gpt-5': ['1.25', '10', 400_000],
  'gpt-5-mini': ['0.25', '2', 400_000],
  'gpt-5-nano': ['0.05', '0.4', 400_000],
  'gpt-4.1': ['2', '8', 1_047_576],
  'gpt-4.1-mini': ['0.4', '1.6', 1_047_576],
  'gpt-4o-mini': ['0.15', '0.6', 128_000],
};
/** USD per 1M tokens of input. */
const EMBEDDINGS: Readonly<Record<string, string>> = {
  'text-embedding-3-small': '0.02',
  'text-embedding-3-large': '0.13',
};
const EMBEDDINGS_CONTEXT = 8192;
/** USD per image, in medium quality. */
const IMAGES: Readonly<Record<string, string>> = { 'gpt-image-1': '0.042', 'gpt-image-1-mini': '0.011' };

/** `base`: the address of the API, without a slash at its end. Rejects with a message for people. */
export async function openaiServices(base: string, key: string): Promise<readonly ServiceConfig[]> {
  const headers = { authorization: `Bearer ${key}` };
  const items = await listLocal(`${base}/models`, 'data', 'OPENAI_BASE_URL says where it is', { headers });
  const listed = new Set(items.map(({ id }) => id));
  const offered = <T>(models: Readonly<Record<string, T>>) =>
    Object.entries(models).filter(([name]) => listed.has(name));
  const [chat, embeddings, images] = [offered(CHAT), offered(EMBEDDINGS), offered(IMAGES)];
  if (chat.length + embeddings.length + images.length === 0) {
    const names = [CHAT, EMBEDDINGS, IMAGES].flatMap((models) => Object.keys(models));
    throw new Error(
      `${new URL(base).host} offers none of ${names.join(', ')}. Name its models in a file: --config FILE`,
    );
  }
  const wires = chat.length > 0 && (await speaksResponses(base, headers)) ? { wires: ['responses' as const] } : {};
  const common = (model: string) => ({
    name: `openai/${model}`,
    displayName: `OpenAI: ${model}`,
    providerName: 'OpenAI',
    url: base,
    apiKey: key,
  });
  return [
    ...chat.map(([model, [prompt, completion, contextLength]]) =>
      localModel({
        ...common(model),
        rates: parseRates({ prompt, completion }),
        facts: { upstreamModel: model, contextLength, inputModalities: ['text', 'image'], ...wires },
      }),
    ),
    ...embeddings.map(([model, prompt]) =>
      localModel({
        ...common(model),
        rates: parseRates({ prompt, completion: 0 }),
        facts: { upstreamModel: model, contextLength: EMBEDDINGS_CONTEXT, outputModalities: ['embeddings'] },
      }),
    ),
    ...images.map(([model, image]) => localImages({ ...common(model), image, upstreamModel: model })),
  ];
}

/** Whether the address has the Responses API. A request without a model is refused, and costs nothing. */
async function speaksResponses(base: string, headers: Readonly<Record<string, string>>): Promise<boolean> {
  return askLocal(`${base}/responses`, { headers, body: {} }).then(
    ({ status }) => status === 400 || status === 422,
    () => false,
  );
}

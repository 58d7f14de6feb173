import { isObject } from '#wire';
import { parseRates } from '#billing';
import { type ServiceConfig, serviceNameFault } from '#config';
import { askLocal, listLocal, parsed } from './ask-local.ts';
import { localModel } from './local-model.ts';

const MODELS_MAX = 50;
/** For a model that does not say how long its context is. */
const CONTEXT = 8192;
const LATEST = ':latest';
/** Families of models that only make embeddings, for versions of Ollama that tell no capabilities. */
const EMBEDS = /bert|embed|bge|minilm/i;

/** The models of Ollama. Calls are free, because it usually runs on the user's own machine. `base`: its address. */
export async function ollamaServices(base: string): Promise<readonly ServiceConfig[]> {
  const listed = (await listLocal(`${base}/api/tags`, 'models', 'OLLAMA_HOST says where it is')).flatMap(({ name }) =>
    typeof name === 'string' && serviceNameFault(`ollama/${name}`) === null ? [name] : [],
  );
  if (listed.length === 0)
    throw new Error('Ollama has no models yet. Fetch one (for example: ollama pull llama3.2) and start again.');
  const models = listed.slice(0, MODELS_MAX);
  const facts = await Promise.all(models.map((model) => factsOf(base, model)));
  return models.flatMap((model, index) =>
    namesOf(model).map((name) =>
      localModel({
        name: `ollama/${name}`,
        displayName: `Ollama: ${name}`,
        providerName: 'Ollama',
        rates: parseRates({ prompt: 0, completion: 0 }),
        facts: { upstreamModel: model, ...facts[index]! },
        url: `${base}/v1`,
        apiKey: null,
      }),
    ),
  );
}

/** Ollama calls `llama3.2:latest` also `llama3.2`, and people do. */
const namesOf = (model: string): readonly string[] =>
  model.endsWith(LATEST) ? [model.slice(0, -LATEST.length), model] : [model];

/** The facts that Ollama tells of a model. One that it does not tell has the usual value. */
async function factsOf(base: string, model: string) {
  const shown = await askLocal(`${base}/api/show`, { body: { model } }).then(
    ({ status, text }) => (status === 200 ? parsed(text) : null),
    () => null,
  );
  const { capabilities, details, model_info: info, parameters } = shown ?? {};
  const can = Array.isArray(capabilities) ? capabilities : null;
  const family = isObject(details) && typeof details['family'] === 'string' ? details['family'] : '';
  const embeds = can === null ? EMBEDS.test(family) : can.includes('embedding') && !can.includes('completion');
  return {
    contextLength: contextOf(info, parameters),
    ...(embeds ? { outputModalities: ['embeddings'] } : {}),
    ...(can?.includes('vision') ? { inputModalities: ['text', 'image'] } : {}),
  };
}

/** The context that a model is run with, if its parameters set one, else the longest that it can have. */
function contextOf(info: unknown, parameters: unknown): number {
  const set = typeof parameters === 'string' ? /^num_ctx\s+(\d{1,9})\s*$/m.exec(parameters)?.[1] : undefined;
  const longest = isObject(info) ? Object.entries(info).find(([name]) => name.endsWith('.context_length'))?.[1] : null;
  const context = set === undefined ? longest : Number(set);
  return Number.isSafeInteger(context) && (context as number) > 0 ? (context as number) : CONTEXT;
}

import type { Service as Listed } from '../api/service.ts';
import type { Schemas } from '../api/types.ts';
import { createSearch } from './ranking.ts';
import { stem, wordsOf } from './words.ts';

/** The members of a service that a search reads. */
type ReadService = Pick<
  Listed,
  | 'primitive'
  | 'name'
  | 'display_name'
  | 'description'
  | 'input_modalities'
  | 'output_modalities'
  | 'supported_parameters'
  | 'typical_usd'
> & { readonly providers: readonly { readonly name: string }[] };

/** Other names of a kind. */
const KIND_WORDS = {
  model: 'model llm',
  tool: 'tool mcp server',
  agent: 'agent a2a assistant',
  image: 'image picture generation, makes a picture, text to image',
  video: 'video movie generation, makes a video, text to video',
} as const;

/** Words for the outputs of a model. */
const GIVES: Readonly<Record<string, string>> = {
  text: 'chat, writes text, answers questions',
  embeddings: 'embedding, makes a vector of a text, semantic search',
  speech: 'speech, text to speech, tts, reads a text aloud with a voice',
  audio: 'speaks, sound out',
  transcription: 'transcription, speech to text, stt, writes down what is said, subtitles',
  translation: 'translates speech',
  rerank: 'rerank, sorts documents by relevance',
  moderation: 'moderation, judges whether a content is harmful',
  image: 'makes a picture, image generation',
};
/** Words for the inputs of a model. */
const TAKES: Readonly<Record<string, string>> = {
  image: 'vision, sees a picture, understands an image',
  file: 'reads a file, pdf, document',
  audio: 'hears sound, audio input',
  video: 'sees a video',
};
const PARAMETERS: Readonly<Record<string, string>> = {
  response_format: 'json schema, structured output',
  structured_outputs: 'json schema, structured output',
  tools: 'function calling, tools',
  reasoning: 'reasoning, thinks',
  web_search_options: 'web search',
};

const textOf = (words: Readonly<Record<string, string>>, names: readonly string[]): string =>
  names.map((name) => words[name] ?? name).join('; ');

const abilitiesOf = ({
  primitive,
  input_modalities: inputs,
  output_modalities: outputs,
  supported_parameters,
}: ReadService) =>
  [
    KIND_WORDS[primitive],
    primitive === 'model' ? textOf(GIVES, outputs) : '',
    primitive === 'model'
      ? textOf(
          TAKES,
          inputs.filter((name) => name !== 'text' && !outputs.includes('transcription')),
        )
      : '',
    textOf(PARAMETERS, supported_parameters),
  ].join('; ');

/** Words that ask for an order and not for a service. */
const CHEAP = new Set(['cheap', 'cheaper', 'cheapest', 'inexpensive', 'affordable', 'low-cost'].map(stem));

/** Finds services, the best first. A question without a subject finds all of them, in their order. */
type ServiceSearch<T> = (question: string) => readonly T[];

/**
 * The search over services: by name, kind, ability, tool, provider and description. Names that contain what was typed
 * come first. `cheap` sorts by the price of a typical use. `toolsOf` gives the tools of a service by its name.
 */
export function createServiceSearch<T extends ReadService>(
  services: readonly T[],
  toolsOf: (name: string) => readonly Pick<Schemas['Tool'], 'name' | 'title' | 'description'>[],
): ServiceSearch<T> {
  const find = createSearch(
    services,
    [
      { name: 'name', weight: 6, text: ({ name, display_name: title }) => `${name} ${title}` },
      { name: 'abilities', weight: 5, text: abilitiesOf },
      {
        name: 'tools',
        weight: 4,
        text: ({ primitive, name }) =>
          primitive === 'tool'
            ? toolsOf(name)
                .map((tool) => `${tool.name} ${tool.title ?? ''} ${tool.description ?? ''}`)
                .join('; ')
            : '',
      },
      { name: 'providers', weight: 2, text: ({ providers }) => providers.map(({ name }) => name).join(' ') },
      { name: 'description', weight: 1, text: ({ description }) => description },
    ],
    { whole: true },
  );
  return (question) => {
    const typed = question.trim().toLowerCase();
    const words = wordsOf(question);
    const subject = words.filter((word) => !CHEAP.has(stem(word)));
    const cheap = subject.length < words.length;
    const named = typed === '' ? [] : services.filter(({ name }) => name.toLowerCase().includes(typed));
    const found = subject.length === 0 ? services : [...new Set([...named, ...find(subject.join(' '))])];
    return cheap ? found.toSorted((a, b) => a.typical_usd - b.typical_usd) : found;
  };
}

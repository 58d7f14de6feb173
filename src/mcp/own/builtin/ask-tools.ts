import { type JsonObject, isObject } from '#wire';
import type { FilePart, Part, TargetRequest, ContentTurn } from '#bridge';
import { NAMED_BY, type BridgedKind, WORD } from './bridged-services.ts';

export const BRIDGED_TOOL = {
  a2a: 'send_message',
  model: 'chat',
  image: 'generate_image',
  video: 'generate_video',
} as const satisfies Record<BridgedKind, string>;

const AGENT_ARGUMENTS = {
  message: { type: 'string', description: 'What to say to the agent' },
  context_id: { type: 'string', description: 'The context of an earlier answer, to continue it' },
  task_id: {
    type: 'string',
    description: 'The task of an earlier answer with the state input-required, to answer its question',
  },
} as const;

const MODEL_ARGUMENTS = {
  prompt: { type: 'string', description: 'What to say to the model' },
  system: { type: 'string', description: 'Instructions that the model is to follow' },
  max_tokens: { type: 'integer', minimum: 1, description: 'Most tokens of the answer' },
} as const;

const RATIO = { type: 'string', pattern: '^[1-9][0-9]{0,3}:[1-9][0-9]{0,3}$', description: 'Width to height' } as const;
const SIZE = {
  type: 'string',
  pattern: '^[1-9][0-9]{1,3}x[1-9][0-9]{1,3}$',
  description: 'Width and height in pixels',
};
const SEED = { type: 'integer', description: 'The same seed makes the same again' } as const;
const NEGATIVE = { type: 'string', description: 'What it must not show' } as const;

const IMAGE_ARGUMENTS = {
  prompt: { type: 'string', description: 'What the image shows' },
  images: { type: 'array', items: { type: 'string' }, description: 'https or data URLs of images, to edit them' },
  size: SIZE,
  aspect_ratio: RATIO,
  negative_prompt: NEGATIVE,
  seed: SEED,
} as const;

const VIDEO_ARGUMENTS = {
  prompt: { type: 'string', description: 'What the video shows' },
  images: { type: 'array', items: { type: 'string' }, description: 'https or data URL of the first frame' },
  duration: { type: 'integer', minimum: 1, description: 'Seconds' },
  resolution: { enum: ['480p', '720p', '1080p', '4k'], description: 'It decides the price of a second' },
  aspect_ratio: RATIO,
  negative_prompt: NEGATIVE,
  seed: SEED,
} as const;

const ARGUMENTS: Readonly<Record<BridgedKind, Readonly<Record<string, object>>>> = {
  a2a: AGENT_ARGUMENTS,
  model: MODEL_ARGUMENTS,
  image: IMAGE_ARGUMENTS,
  video: VIDEO_ARGUMENTS,
};
const SAID = {
  a2a: 'message',
  model: 'prompt',
  image: 'prompt',
  video: 'prompt',
} as const satisfies Record<BridgedKind, string>;
const ONE = {
  a2a: 'an agent',
  model: 'a model',
  image: 'an image model',
  video: 'a video model',
} as const satisfies Record<BridgedKind, string>;

/**
 * The input schema of the tool. `hasName`: the tool serves all services of the kind, and its first argument names one.
 */
export function askSchema(kind: BridgedKind, hasName: boolean): JsonObject {
  const which = {
    [NAMED_BY[kind]]: { type: 'string', description: `Name of the ${WORD[kind]}, as find_tools gives it` },
  };
  const required = [...(hasName ? [NAMED_BY[kind]] : []), SAID[kind]];
  return {
    type: 'object',
    properties: { ...(hasName ? which : {}), ...ARGUMENTS[kind] },
    required,
    additionalProperties: false,
  };
}

/**
 * The schema of an agent's answer. The agent's words are in it too, because several clients show only this part to
 * their model.
 */
export const AGENT_OUTPUT: JsonObject = {
  type: 'object',
  properties: {
    answer: { type: 'string', description: 'What the agent says, as text' },
    task_id: { type: ['string', 'null'], description: 'The task, if the agent began one' },
    context_id: { type: ['string', 'null'], description: 'The context that the next message can continue' },
    state: {
      type: 'string',
      enum: ['completed', 'input-required', 'canceled', 'failed'],
      description: 'input-required: the answer is a question to you',
    },
    cost_pending: { type: 'boolean', description: 'true: the cost of this call is charged when its task ends' },
  },
  required: ['answer', 'task_id', 'context_id', 'state'],
};

interface AskArguments {
  readonly name: string | null;
  readonly ask: Omit<TargetRequest, 'stream'>;
}

const ID_MAX = 1_024;

/** Reads the arguments. Returns a fault if they are wrong. */
export function readAsk(kind: BridgedKind, args: unknown, hasName: boolean): AskArguments | { readonly fault: string } {
  if (args !== undefined && !isObject(args)) return { fault: 'The arguments must be an object' };
  const fields: JsonObject = args ?? {};
  const known = Object.keys(askSchema(kind, hasName)['properties'] as object);
  const stranger = Object.keys(fields).find((key) => !known.includes(key));
  if (stranger !== undefined)
    return {
      fault: `Unknown argument ${JSON.stringify(stranger.slice(0, 64))}: the arguments are ${known.join(', ')}`,
    };
  const name = hasName ? fields[NAMED_BY[kind]] : null;
  if (hasName && (typeof name !== 'string' || name === ''))
    return { fault: `${NAMED_BY[kind]} must be the name of ${ONE[kind]}, a string` };
  const content = fields[SAID[kind]];
  if (typeof content !== 'string' || content.trim() === '')
    return { fault: `${SAID[kind]} must be a string that is not empty` };
  for (const key of ['context_id', 'task_id']) {
    const id = fields[key];
    if (id !== undefined && (typeof id !== 'string' || id === '' || id.length > ID_MAX))
      return { fault: `${key} must be an id of an earlier answer, 1 to ${ID_MAX} characters` };
  }
  const isMedia = kind === 'image' || kind === 'video';
  const images = isMedia ? imagesIn(fields['images']) : [];
  if (images === null) return { fault: 'images must be a list of https URLs and data URLs' };
  const { system, max_tokens: maxTokens, context_id: contextId = null, task_id: taskId = null } = fields;
  if (system !== undefined && typeof system !== 'string') return { fault: 'system must be a string' };
  if (maxTokens !== undefined && !(Number.isSafeInteger(maxTokens) && Number(maxTokens) >= 1))
    return { fault: 'max_tokens must be an integer from 1 on' };
  const turns: ContentTurn[] = [
    ...(system === undefined ? [] : [mcpRequest('system', system)]),
    mcpRequest('user', content, images),
  ];
  return {
    name: name as string | null,
    ask: {
      turns,
      arguments: isMedia ? moreIn(kind, fields) : null,
      contextId: contextId as string | null,
      taskId: taskId as string | null,
      maxTokens: (maxTokens as number | undefined) ?? null,
    },
  };
}

function mcpRequest(role: ContentTurn['role'], text: string, files: readonly FilePart[] = []): ContentTurn {
  const parts: readonly Part[] = [{ kind: 'text', text }, ...files];
  return { role, parts };
}

function imagesIn(urls: unknown): readonly FilePart[] | null {
  if (urls === undefined) return [];
  if (!Array.isArray(urls) || !urls.every((url) => typeof url === 'string')) return null;
  return urls.map((url) => {
    const [, type, base64] = /^data:([\w.+-]+\/[\w.+-]+);base64,(.*)$/s.exec(url) ?? [];
    return base64 === undefined
      ? { kind: 'file', mediaType: null, name: null, url, bytes: null }
      : { kind: 'file', mediaType: type!, name: null, url: null, bytes: base64 };
  });
}

function moreIn(kind: BridgedKind, fields: JsonObject): JsonObject {
  const own = Object.keys(ARGUMENTS[kind]).filter((name) => name !== SAID[kind] && name !== 'images');
  return Object.fromEntries(own.flatMap((name) => (fields[name] === undefined ? [] : [[name, fields[name]]])));
}

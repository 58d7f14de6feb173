import { TOOL_META } from '../../catalogue/decorate.ts';
import { AGENT_OUTPUT, askSchema } from '../builtin/ask-tools.ts';
import { BRIDGED_KINDS, type BridgedKind } from '../builtin/bridged-services.ts';

/** The gateway's own tools. No tool of a service has such a name, because those begin with a prefix. */
export const OWN = {
  find: 'find_tools',
  call: 'call_tool',
  askAgent: 'ask_agent',
  askModel: 'ask_model',
  makeImage: 'generate_image',
  makeVideo: 'generate_video',
} as const;

export const FIND_LIMIT = { fallback: 10, max: 50 } as const;
export const QUERY_MAX = 1_000;

const free = { [TOOL_META.price]: { per_call: '0', currency: 'USDC' } };

const FIND_TOOLS = {
  name: OWN.find,
  title: 'Find tools',
  description:
    'Search all tools that this gateway offers, and the agents and models that can be asked. Give words for what you want to do; the best matches come back with name, description, input schema and price. The name of a tool as the query gives that tool alone, with all of its definition. Then call one by its name through call_tool, or directly; an agent or a model as its `call` says.',
  inputSchema: {
    type: 'object',
    properties: {
      query: {
        type: 'string',
        maxLength: QUERY_MAX,
        description: 'Words for what the tool should do, such as "search the web"; "" for all tools',
      },
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: FIND_LIMIT.max,
        default: FIND_LIMIT.fallback,
        description: 'Most tools to return',
      },
      services: { type: 'array', items: { type: 'string' }, description: 'Search only in these services' },
    },
    required: ['query'],
  },
  outputSchema: {
    type: 'object',
    properties: {
      tools: {
        type: 'array',
        items: { type: 'object' },
        description: 'Best first: name, service, title, description, inputSchema, price, definition',
      },
      searched: { type: 'integer', description: 'How many tools were searched' },
      agents: {
        type: 'array',
        items: { type: 'object' },
        description: 'Best first: agent, title, description, price, and the call that asks it',
      },
      models: {
        type: 'array',
        items: { type: 'object' },
        description: 'Best first: model, title, description, price, and the call that asks it',
      },
      image_models: {
        type: 'array',
        items: { type: 'object' },
        description: 'Models that make images, as models',
      },
      video_models: {
        type: 'array',
        items: { type: 'object' },
        description: 'Models that make videos, as models',
      },
    },
    required: ['tools', 'searched'],
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
  _meta: free,
} as const;

const CALL_TOOL = {
  name: OWN.call,
  title: 'Call a tool',
  description:
    'Call a tool that find_tools has found, by its name and with arguments that fit its input schema. The result is that of the tool, and the price is that of the tool.',
  inputSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'The name of the tool as find_tools gives it' },
      arguments: { type: 'object', description: 'Arguments for the tool' },
    },
    required: ['name'],
  },
} as const;

export const OWN_TOOLS: readonly string[] = [JSON.stringify(FIND_TOOLS), JSON.stringify(CALL_TOOL)];

export const ASK = {
  a2a: OWN.askAgent,
  model: OWN.askModel,
  image: OWN.makeImage,
  video: OWN.makeVideo,
} as const satisfies Record<BridgedKind, string>;

const ASK_TOOLS = {
  a2a: {
    name: ASK.a2a,
    title: 'Ask an agent',
    description:
      'Send a message to one of the agents of this gateway. find_tools finds agents and says what they cost; the price is that of the agent.',
    inputSchema: askSchema('a2a', true),
    outputSchema: AGENT_OUTPUT,
  },
  model: {
    name: ASK.model,
    title: 'Ask a model',
    description:
      'Ask one of the language models of this gateway. find_tools finds models and says what they cost; the price is that of the model.',
    inputSchema: askSchema('model', true),
  },
  image: {
    name: ASK.image,
    title: 'Make an image',
    description:
      'Make an image with one of the image models of this gateway, or edit images. find_tools finds image models and says what they cost.',
    inputSchema: askSchema('image', true),
  },
  video: {
    name: ASK.video,
    title: 'Make a video',
    description:
      'Make a video with one of the video models of this gateway. It takes minutes; the answer has the address of the file. find_tools finds video models and says what they cost.',
    inputSchema: askSchema('video', true),
  },
} as const satisfies Record<BridgedKind, object>;

/**
 * The tools that ask these kinds, each as JSON text. `withFind`: also the tool that finds what to ask, because it is
 * not listed otherwise.
 */
export function askToolTexts(kinds: readonly BridgedKind[], withFind: boolean): readonly string[] {
  const find = withFind && kinds.length > 0 ? [FIND_TOOLS] : [];
  return [...find, ...kinds.map((kind) => ASK_TOOLS[kind])].map((tool) => JSON.stringify(tool));
}

export const askedBy = (tool: unknown): BridgedKind | null => BRIDGED_KINDS.find((kind) => tool === ASK[kind]) ?? null;

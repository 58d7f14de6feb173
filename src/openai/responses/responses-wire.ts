import { isObject } from '#wire';
import type { NativeWire } from '../native/native-wire.ts';
import { holds } from '../native/native-size.ts';
import { isSealedHere } from '../translated/sealed-thinking.ts';
import { createResponsesSpeech } from './native-responses.ts';

type Json = Readonly<Record<string, unknown>>;

const SEALED = /"tg[12]\./;
/** Thinking that this gateway did not seal. */
const LOST = /"encrypted_content":\s*"(?!tg[12]\.|")/;
/** Tools that the client runs. */
const OF_THE_CLIENT: ReadonlySet<unknown> = new Set([
  'function',
  'custom',
  'namespace',
  'local_shell',
  'shell',
  'apply_patch',
]);

/** OpenAI's Responses API, as providers speak it. */
export const RESPONSES_WIRE: NativeWire = {
  name: 'responses',
  path: '/responses',
  cap: 'max_output_tokens',
  prompt: 'input',
  headers: () => ({}),
  changed({ input, metadata }, text) {
    return {
      // It is for the gateway's own logs.
      ...(metadata === undefined ? {} : { metadata: null }),
      ...(SEALED.test(text) && Array.isArray(input) ? { input: JSON.stringify(withoutSealed(input)) } : {}),
    };
  },
  hidesPrompt: ({ tools, input }) => hasHostedTool({ tools }) || holds(input, hasFile) || holds(input, hasHostedTool),
  loses: (_asked, text) => LOST.test(text),
  speech: createResponsesSpeech,
};

/** A file that is not plain text in the request: its text or its pages are more than its bytes. */
const hasFile = ({ type, file_data: data }: Json): boolean =>
  type === 'input_file' && !(typeof data === 'string' && /^data:text\//i.test(data));

/** Items name tools, too. */
const hasHostedTool = ({ tools }: Json): boolean =>
  Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && runsThere(tool));

/** A shell runs at the client, unless it is in a container. */
const runsThere = ({ type, environment, tools }: Json): boolean =>
  !OF_THE_CLIENT.has(type) ||
  (isObject(environment) && environment['type'] !== 'local') ||
  (type === 'namespace' && hasHostedTool({ tools }));

/** Thinking that this gateway sealed is refused by a provider that seals its own. */
const withoutSealed = (input: readonly unknown[]): readonly unknown[] =>
  input.filter((item) => !isObject(item) || item['type'] !== 'reasoning' || !isSealedHere(item['encrypted_content']));

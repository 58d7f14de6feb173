import { isObject } from '#wire';
import type { NativeWire } from '../native/native-wire.ts';
import { isSealedHere } from '../translated/sealed-thinking.ts';
import { createResponsesSpeech } from './native-responses.ts';

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
  runsTools: ({ tools }) =>
    Array.isArray(tools) && (tools as unknown[]).some((tool) => isObject(tool) && !OF_THE_CLIENT.has(tool['type'])),
  loses: (_asked, text) => LOST.test(text),
  speech: createResponsesSpeech,
};

/** Thinking that this gateway sealed is refused by a provider that seals its own. */
const withoutSealed = (input: readonly unknown[]): readonly unknown[] =>
  input.filter((item) => !isObject(item) || item['type'] !== 'reasoning' || !isSealedHere(item['encrypted_content']));

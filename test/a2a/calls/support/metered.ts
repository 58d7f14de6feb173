import type { AgentOffer, RawExchange } from '../../../support/a2a-agent/index.ts';
import type { Spine } from '../../../support/spine.ts';

/** An agent that is paid by what it reports, 0.05 USD at most. */
export const METERED: Partial<AgentOffer> = {
  pricing: 'prompt = 2\ncompletion = 4\nper_second = 0.0001\nper_call_max = 0.05',
};

let tasks = 0;

/** As many tokens as an answer of `claims` has bytes, and some more. */
export const ANSWERED = 20_000;

/**
 * Completes a task at once with a long answer, and claims what the message says, letter by letter. Speaks the
 * version of the request.
 */
export function claims({ request, response, id }: RawExchange): void {
  const { message } = request.params as { readonly message: { readonly parts: readonly [{ readonly text: string }] } };
  tasks += 1;
  const legacy = request.version !== '1.0';
  const part = `{${legacy ? '"kind":"text",' : ''}"text":"${'x'.repeat(ANSWERED)}"}`;
  const task = `{${legacy ? '"kind":"task",' : ''}"id":"claimed-${tasks}","contextId":"c","artifacts":[{"artifactId":"a","parts":[${part}]}],"status":{"state":"${legacy ? 'completed' : 'TASK_STATE_COMPLETED'}"},"metadata":{"tollgate/usage":${message.parts[0].text}}}`;
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${legacy ? task : `{"task":${task}}`}}`);
}

/** What the provider of a service was flagged for so far, as the operator's log has it. */
export function flagsOf({ logs }: Spine, provider: string): Readonly<Record<string, number>> {
  const flags: Record<string, number> = {};
  for (const line of logs) {
    const entry = JSON.parse(line) as {
      readonly msg?: string;
      readonly provider?: string;
      readonly flags?: readonly string[];
    };
    if (entry.msg === 'provider flagged' && entry.provider === provider)
      for (const flag of entry.flags ?? []) flags[flag] = (flags[flag] ?? 0) + 1;
  }
  return flags;
}

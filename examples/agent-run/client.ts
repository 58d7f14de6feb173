/** A consumer: sends a task to an agent through tollgate, with a cap on all that it may cost. */
import { Role, TaskState, type Part } from '@a2a-js/sdk';
import {
  ClientFactory,
  ClientFactoryOptions,
  createAuthenticatingFetchWithRetry,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';

export interface Gateway {
  readonly url: string;
  readonly key: string;
}

export interface Outcome {
  readonly text: string;
  readonly data: unknown;
  /** Id under which the gateway shows what was charged. */
  readonly generation: string;
}

/**
 * Sends one text, and resolves when its task is completed. `maxCost`: USD, of the agent and of everything that it
 * calls together.
 */
export async function ask(
  gateway: Gateway,
  agent: string,
  text: string,
  maxCost: string,
  hear: (words: string) => void,
): Promise<Outcome> {
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ authorization: `Bearer ${gateway.key}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const factory = new ClientFactory(
    ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    }),
  );
  const client = await factory.createFromUrl(`${gateway.url}/a2a/${agent}/`);

  const parts: Part[] = [];
  let generation = '';
  let state: TaskState = TaskState.TASK_STATE_SUBMITTED;
  let words = '';
  const events = client.sendMessageStream({
    tenant: '',
    // The same messageId again is the same message: it is neither done nor charged twice.
    message: {
      messageId: crypto.randomUUID(),
      role: Role.ROLE_USER,
      parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: 'text/plain' }],
      contextId: '',
      taskId: '',
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: { 'tollgate/max_cost': maxCost },
  });
  for await (const { payload } of events) {
    if (payload?.$case === 'artifactUpdate') parts.push(...(payload.value.artifact?.parts ?? []));
    if (payload?.$case !== 'statusUpdate') continue;
    const { status, metadata } = payload.value;
    state = status?.state ?? state;
    words = textOf(status?.message?.parts ?? []);
    if (words !== '') hear(words);
    // The last event says which call it was, and what it cost by itself.
    const charged = metadata?.['tollgate/generation'] as { readonly id: string } | undefined;
    generation = charged?.id ?? generation;
  }
  if (state !== TaskState.TASK_STATE_COMPLETED) throw new Error(`The task is ${TaskState[state]}: ${words}`);
  return {
    text: textOf(parts),
    data: parts.find(({ content }) => content?.$case === 'data')?.content?.value,
    generation,
  };
}

const textOf = (parts: readonly Part[]): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

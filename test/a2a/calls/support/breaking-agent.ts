import type { RawExchange } from '../../../support/a2a-agent/index.ts';
import type { CallsWorld } from './calls-world.ts';
import { serveRaw, taskResult, writeEvent, type RawServed } from './raw-served.ts';

/** An agent whose stream ends before its task does. */
export interface BreakingAgent extends RawServed {
  readonly taskId: string;
  /** From now on the task is shown so. */
  stands(state: string, more?: object): void;
}

export interface Breaks {
  /** The text of the artifact that is streamed before the break; null for none. */
  readonly gives: string | null;
  /** What becomes of the stream after that. */
  readonly stream: 'breaks' | 'hangs';
  /** What it says to a cancellation; default it cancels. */
  readonly cancels?: (exchange: RawExchange, served: Pick<BreakingAgent, 'taskId' | 'stands'>) => void;
  /** Told of each look at the task, before it is answered. */
  readonly looked?: (polls: number, served: Pick<BreakingAgent, 'taskId' | 'stands'>) => void;
}

let begun = 0;

export async function serveBreaking(
  calls: CallsWorld,
  { gives, stream, cancels, looked }: Breaks,
): Promise<BreakingAgent> {
  begun += 1;
  const taskId = `t-broken-${begun}`;
  const artifacts = gives === null ? [] : [{ artifactId: 'a', parts: [{ text: gives }] }];
  let shown = taskResult(taskId, 'WORKING', { artifacts });
  let polls = 0;
  const stands = (state: string, more: object = {}) => void (shown = taskResult(taskId, state, { artifacts, ...more }));
  const own = { taskId, stands };
  const served = await serveRaw(calls.world, (exchange) => {
    const { request, response, result } = exchange;
    if (request.method === 'CancelTask') {
      if (cancels) return cancels(exchange, own);
      stands('CANCELED');
      return result(shown.task);
    }
    if (request.method === 'GetTask') {
      looked?.((polls += 1), own);
      return result(shown.task);
    }
    writeEvent(exchange, taskResult(taskId, 'WORKING'));
    if (gives !== null) writeEvent(exchange, artifactEvent(taskId, gives));
    // What was written is on its way before the connection goes.
    if (stream === 'breaks') response.write(': \n\n', () => setImmediate(() => response.destroy()));
  });
  return { ...served, ...own };
}

export const artifactEvent = (taskId: string, text: string) => ({
  artifactUpdate: { taskId, contextId: `context-of-${taskId}`, artifact: { artifactId: 'a', parts: [{ text }] } },
});

import { Agent } from 'node:http';
import { parentPort } from 'node:worker_threads';
import { crowd, post } from './crowd.ts';
import { startLargeAnswers } from './large-answers.ts';

/** What a crowd does: posts the same request again and again. */
export interface CrowdOrder {
  readonly url: string;
  readonly key: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
  readonly width: number;
}

/**
 * A provider of large answers and the crowds that ask for them, in a thread of their own: what they cost must not
 * slow the clock of who stands by.
 */
const provider = await startLargeAnswers();
const agent = new Agent({ keepAlive: true });
let running: ReturnType<typeof crowd> | null = null;
parentPort!.on('message', async (order: CrowdOrder | 'stop' | 'close') => {
  if (order === 'close') {
    agent.destroy();
    await provider.stop();
    parentPort!.close();
  } else if (order === 'stop') {
    parentPort!.postMessage(await running!.stop());
  } else {
    const one = () => post(agent, order.url, order.key, order.body, order.headers);
    // The first large reply starts the thread that reads them.
    await one();
    running = crowd(order.width, one);
    parentPort!.postMessage('begun');
  }
});
parentPort!.postMessage(provider.url);

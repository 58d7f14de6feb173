import { Agent, request } from 'node:http';
import { parentPort, workerData } from 'node:worker_threads';

export interface Posts {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly bytes: number;
  readonly tries: number;
  /** Without, each request asks for the close of its connection, as node-fetch and `agent: false` do. */
  readonly keepAlive: boolean;
}

/** Runs in a thread of its own, because a client in the gateway's thread never sends while the gateway closes. */
async function postAll({ url, headers, bytes, tries, keepAlive }: Posts): Promise<void> {
  const agent = new Agent({ keepAlive });
  const body = Buffer.alloc(bytes, 'x');
  const found: Record<string, number> = {};
  for (let done = 0; done < tries; done += 1) {
    const outcome = await new Promise<string>((resolve) => {
      const asked = request(url, { method: 'POST', agent, headers: { ...headers, 'content-length': bytes } });
      asked.on('response', (response) => {
        response.resume();
        response.on('end', () => resolve(String(response.statusCode)));
        response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      });
      asked.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
      asked.end(body);
    });
    found[outcome] = (found[outcome] ?? 0) + 1;
  }
  agent.destroy();
  parentPort!.postMessage(found);
}

await postAll(workerData as Posts);

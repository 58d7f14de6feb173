import { once } from 'node:events';
import { fork } from 'node:child_process';
import { startSpine, type SpineOptions } from './spine.ts';

/* A gateway in a process of its own, that can be killed and whose clock the test sets. Its provider is the test's. */

export interface SpineChild {
  readonly origin: string;
  readonly adminKey: string;
  /** Sets the clock of its calls, in epoch milliseconds. */
  setClock(at: number): Promise<void>;
  /** Ends it in the middle of whatever it does. */
  kill(): Promise<void>;
  /** Ends it in its order. */
  stop(): Promise<void>;
}

interface ChildOptions extends Pick<SpineOptions, 'databaseUrl' | 'dataDir' | 'toml'> {
  readonly providerUrl: string;
  readonly at: number;
}
type Order = { readonly at: number } | { readonly stop: true };
type Reply = { readonly origin: string; readonly adminKey: string } | { readonly done: true };

export async function startSpineChild(options: ChildOptions): Promise<SpineChild> {
  const child = fork(import.meta.filename, [JSON.stringify(options)], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  const reply = async (): Promise<Reply> => {
    const [message] = (await Promise.race([once(child, 'message'), exited.then(failed)])) as [Reply];
    return message;
  };
  const failed = ([code, signal]: unknown[]) => {
    throw new Error(`the gateway ended, with ${String(code ?? signal)}`);
  };
  const order = (message: Order) => {
    const answer = reply();
    child.send(message);
    return answer;
  };
  const { origin, adminKey } = (await reply()) as Extract<Reply, { readonly origin: string }>;
  return {
    origin,
    adminKey,
    async setClock(at) {
      await order({ at });
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
    async stop() {
      child.send({ stop: true } satisfies Order);
      await exited;
    },
  };
}

async function serve({ providerUrl, at, ...options }: ChildOptions): Promise<void> {
  let clock = at;
  const provider = { url: providerUrl } as NonNullable<SpineOptions['provider']>;
  const spine = await startSpine({ ...options, provider, now: () => clock, elapsed: () => performance.now() });
  const send = (reply: Reply) => process.send?.(reply);
  process.on('message', (order: Order) => {
    if ('at' in order) {
      clock = order.at;
      send({ done: true });
    } else
      void (async () => {
        await spine.stop();
        process.disconnect?.();
      })();
  });
  send({ origin: spine.origin, adminKey: spine.adminKey });
}

if (import.meta.main) await serve(JSON.parse(process.argv[2]!) as ChildOptions);

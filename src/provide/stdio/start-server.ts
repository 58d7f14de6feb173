import type { StopTimes } from './child-process.ts';
import { askEra, type Era } from './era.ts';
import type { ProcessOptions } from './message-process.ts';
import { openPipe, type Pipe } from './pipe.ts';

/** A server that is ready for requests. */
export interface Running {
  readonly pipe: Pipe;
  readonly era: Era;
}

/** A server's process from its start to its end. */
export interface Run {
  /** Settles when the server's era is known. Rejects if the server can't be used. */
  readonly ready: Promise<Running>;
  /** Settles with a text that says how the process ended. */
  readonly ended: Promise<string>;
  stop(times: StopTimes): Promise<string>;
  kill(): void;
}

export interface ServerOptions extends ProcessOptions {
  /** Version of this program. The server gets it. */
  readonly version: string;
}

/**
 * Starts a server and asks for its era. Some legacy servers exit if the first message isn't `initialize`. Such a server
 * is started a second time.
 */
export function startServer(options: ServerOptions): Run {
  const { version } = options;
  let pipe = openPipe(options);
  let stopping = false;

  async function begin(): Promise<Running> {
    let era = await askEra(pipe, { version, discover: true });
    if (era === null && !stopping) {
      await pipe.ended;
      if (!stopping) {
        pipe = openPipe(options);
        era = await askEra(pipe, { version, discover: false });
      }
    }
    if (era === null) throw new Error('ended before it was initialized');
    return { pipe, era };
  }

  const ready = begin();
  const how = () => pipe.ended;
  return {
    ready,
    ended: ready.then(how, how),
    async stop(times) {
      stopping = true;
      return pipe.stop(times);
    },
    kill() {
      stopping = true;
      pipe.kill();
    },
  };
}

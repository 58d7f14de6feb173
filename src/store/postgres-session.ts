import { Client, type ClientConfig } from 'pg';
import { DatabaseError, type Row, type Statement, type Step, type Value } from './database.ts';
import { toDatabaseError } from './postgres-error.ts';

/** One connection in pipeline mode. */
export interface PostgresSession {
  /**
   * Sends all steps at once, without waiting for answers in between. After all answers have arrived, rejects with the
   * first error.
   */
  pipeline(steps: readonly Step[]): Promise<readonly (readonly Row[])[]>;
  /** True after the connection is lost. Statements in flight may or may not have been executed. */
  readonly lost: boolean;
  /** Closes the connection at once. Statements in flight fail with `unavailable`. */
  destroy(): void;
  close(): Promise<void>;
}

const CLOSE_MS = 1_000;
/**
 * Timeout for connecting and setup together. The connection timeout alone would not cover a server that stops answering
 * during the setup.
 */
const SETUP_MS = 4_000;

export async function openSession(config: ClientConfig, setup: readonly Statement[]): Promise<PostgresSession> {
  const client = new Client({ ...config, pipeline: true });
  let lost = false;
  const lose = () => {
    lost = true;
  };
  client.on('error', lose);
  client.on('end', lose);

  const pipeline = async (steps: readonly Step[]): Promise<readonly (readonly Row[])[]> => {
    if (lost)
      throw new DatabaseError('The connection to the database is lost', { code: 'connection', unavailable: true });
    const { stream } = client.connection;
    stream.cork();
    const answers = steps.map(({ statement, params }) =>
      client.query<Record<string, Value>>({
        name: statement.name,
        text: statement.text,
        values: (params ?? []) as Value[],
      }),
    );
    stream.uncork();
    const settled = await Promise.allSettled(answers);
    return settled.map((answer) => {
      if (answer.status === 'rejected') throw toDatabaseError(answer.reason);
      return answer.value.rows;
    });
  };

  const timer = setTimeout(() => client.connection.stream.destroy(), SETUP_MS);
  try {
    await client.connect();
    await pipeline(setup.map((statement) => ({ statement })));
  } catch (error) {
    client.connection.stream.destroy();
    throw toDatabaseError(error);
  } finally {
    clearTimeout(timer);
  }
  return {
    pipeline,
    get lost() {
      return lost;
    },
    destroy() {
      lost = true;
      client.connection.stream.destroy();
    },
    async close() {
      // A server that no longer answers must not keep a gateway from stopping.
      const timer = setTimeout(() => client.connection.stream.destroy(), CLOSE_MS);
      await client.end();
      clearTimeout(timer);
    },
  };
}

import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from './free-port.ts';
import { findProgram } from './find-program.ts';
import { createKeeper } from './server-process.ts';

/** One series of an answer, and its value. */
export interface Figure {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A separate Prometheus on loopback. It ends with this process at the latest. */
export interface Prometheus {
  /** Evaluates PromQL now. Throws Prometheus's error message for an invalid expression. */
  query(expression: string): Promise<readonly Figure[]>;
  stop(): Promise<void>;
}

interface Answer {
  readonly error?: string;
  readonly data?: { readonly result: readonly { metric: Record<string, string>; value: [number, string] }[] };
}

/** `config` is the text of prometheus.yml. Paths in it must be absolute. */
export async function startPrometheus(config: string): Promise<Prometheus> {
  const { file, env } = findProgram('prometheus');
  const home = mkdtempSync(join(tmpdir(), 'tollgate-prometheus-'));
  const keeper = createKeeper([home]);
  try {
    writeFileSync(join(home, 'prometheus.yml'), config);
    const address = `127.0.0.1:${await findFreePort()}`;
    const args = [
      `--config.file=${join(home, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(home, 'data')}`,
      `--web.listen-address=${address}`,
    ];
    await keeper.start({ file, args, env, cwd: home }).wrote('Server is ready to receive web requests');
    return {
      async query(expression) {
        const url = `http://${address}/api/v1/query?query=${encodeURIComponent(expression)}`;
        const { error, data } = (await (await fetch(url)).json()) as Answer;
        if (data === undefined) throw new Error(`Prometheus does not take ${expression}: ${error}`);
        return data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }));
      },
      stop: () => keeper.close(),
    };
  } catch (error) {
    await keeper.close();
    throw error;
  }
}

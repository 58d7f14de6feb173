import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import S3rver from 's3rver';

/** An S3-compatible store on loopback, with one bucket. */
export interface S3Server {
  /** The bucket's URL with a prefix, for `media.s3_url`. */
  readonly url: string;
  /** All keys in the bucket. */
  keys(): readonly string[];
  /** TOML of `[media]` for a gateway that stores its files there. */
  readonly toml: string;
  /** Refuses connections until `back` is called. Then it has the same address and the same content. */
  away(): Promise<void>;
  back(): Promise<void>;
  stop(): Promise<void>;
}

const KEY = 'S3RVER';

export async function startS3Server(): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-s3-'));
  const open = async (port: number) => {
    const server = new S3rver({
      address: '127.0.0.1',
      port,
      directory,
      silent: true,
      configureBuckets: [{ name: 'films' }],
    });
    return { server, port: (await server.run()).port };
  };
  let running: Awaited<ReturnType<typeof open>> | null = await open(0);
  const { port } = running;
  const url = `http://127.0.0.1:${port}/films/gate`;
  const away = async () => {
    await running?.server.close();
    running = null;
  };
  return {
    url,
    toml: `s3_url = "${url}"\ns3_access_key_id = "${KEY}"\ns3_secret_access_key = "${KEY}"\n`,
    keys: () =>
      readdirSync(join(directory, 'films'), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile() && entry.name.endsWith('object'))
        .map(({ parentPath, name }) => join(parentPath, name).slice(join(directory, 'films').length + 1))
        .map((path) => path.replace(/\._S3rver_object$/, '')),
    away,
    async back() {
      await away();
      running = await open(port);
    },
    async stop() {
      await away();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** `@musistudio/llms`, the library of Claude Code Router. It translates messages to chat. */
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { parseArgs } from 'node:util';

interface Router {
  start(): Promise<void>;
}

const { values } = parseArgs({ options: { upstream: { type: 'string' } } });
const { default: RouterServer } = createRequire(import.meta.url)('@musistudio/llms') as {
  readonly default: new (options: object) => Router;
};

/** The library needs a port. With port 0 it wouldn't report which port it got. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

const port = await freePort();
const router = new RouterServer({
  useJsonFile: false,
  useEnvFile: false,
  logger: false,
  initialConfig: {
    HOST: '127.0.0.1',
    PORT: port,
    providers: [
      {
        name: 'bench',
        api_base_url: `${values.upstream}/v1/chat/completions`,
        api_key: 'bench',
        models: ['bench-wire'],
      },
    ],
  },
});
await router.start();
process.stdout.write(`${JSON.stringify({ port })}\n`);
process.stdin.resume().once('end', () => process.exit(0));

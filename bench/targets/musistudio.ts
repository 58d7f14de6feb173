/** `@musistudio/llms`, the library of Claude Code Router. It translates messages to chat. */
import { createRequire } from 'node:module';
import { parseArgs } from 'node:util';
import { findFreePort } from '../../test/support/free-port.ts';

interface Router {
  start(): Promise<void>;
}

const { values } = parseArgs({ options: { upstream: { type: 'string' } } });
const { default: RouterServer } = createRequire(import.meta.url)('@musistudio/llms') as {
  readonly default: new (options: object) => Router;
};

// With port 0 the library wouldn't report which port it got.
const port = await findFreePort();
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

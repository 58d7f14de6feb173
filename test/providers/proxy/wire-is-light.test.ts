import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

/** What importing a module loads: the packages, and the rooms of ours. */
function loadedBy(module: string): readonly string[] {
  const program = `
    import { registerHooks } from 'node:module';
    const loaded = new Set();
    registerHooks({ load(url, context, next) { loaded.add(url); return next(url, context); } });
    await import(${JSON.stringify(module)});
    console.log(JSON.stringify([...loaded]));`;
  const root = new URL('../../../', import.meta.url);
  const urls = JSON.parse(
    execFileSync(process.execPath, ['--input-type=module', '--eval', program], { cwd: root, encoding: 'utf8' }),
  ) as string[];
  return urls
    .map((url) => (url.startsWith(root.href) ? url.slice(root.href.length) : url))
    .map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? path);
}

const HEAVY = ['fastify', 'pg', 'undici', 'ioredis', 'ajv', 'pino', 'prom-client', '@fastify/swagger', 'viem', 'ws'];

test('what the proxy takes from the gateway loads no server, no database and no client', () => {
  const loaded = [...loadedBy('#network/tunnel'), ...loadedBy('#config')];
  expect(loaded).toContain('src/server/config/blocks.ts');
  expect(loaded.filter((one) => HEAVY.includes(one))).toEqual([]);
  expect(
    loaded.filter((one) =>
      /^src\/(?:gateway\/(?:call|auth|tasks|network\/upstream)|console|billing\/chains|program)\//.test(one),
    ),
  ).toEqual([]);
});

test("nor does reading a provider's file", () => {
  expect(loadedBy('./src/providers/proxy/provider-file.ts').filter((one) => HEAVY.includes(one))).toEqual([]);
});

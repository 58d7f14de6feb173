import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { createOriginGuard } from '#security';
import { GatewayError } from '#errors';
import { createServer } from '#http';
import { LIMITS } from '../../server/accounts/gateway-world.ts';

const conformance = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

interface Check {
  readonly id: string;
  readonly status: string;
}

test.each(['2025-11-25', '2026-07-28'])(
  'the conformance suite finds protection from DNS rebinding, at %s',
  async (version) => {
    const guard = createOriginGuard({
      publicUrl: null,
      signInDomains: [],
      bindHost: '127.0.0.1',
      allowedOrigins: [],
      allowedHosts: [],
    });
    const server = createServer({ limits: LIMITS, onError: () => {} });
    const reasons: string[] = [];
    server.post('/mcp', async (request) => {
      const reason = guard(request.headers, request.raw.rawHeaders);
      if (reason !== null) {
        reasons.push(reason);
        throw new GatewayError('permission_denied', reason);
      }
      return { jsonrpc: '2.0', id: 1, result: {} };
    });
    const url = await server.listen({ host: '127.0.0.1', port: 0 });
    const out = await mkdtemp(join(tmpdir(), 'tollgate-conformance-'));
    onTestFinished(async () => {
      await server.close();
      await rm(out, { recursive: true });
    });

    const flags = ['--scenario', 'dns-rebinding-protection', '--spec-version', version];
    await promisify(execFile)(process.execPath, [conformance, 'server', '--url', `${url}/mcp`, ...flags, '-o', out]);
    const file = (await readdir(out, { recursive: true })).find((name) => name.endsWith('checks.json'))!;
    const checks = (JSON.parse(await readFile(join(out, file), 'utf8')) as Check[]).map(({ id, status }) => [
      id,
      status,
    ]);
    expect(checks).toEqual([
      ['localhost-host-rebinding-rejected', 'SUCCESS'],
      ['localhost-host-valid-accepted', 'SUCCESS'],
    ]);
    expect(reasons).toEqual([expect.stringContaining('evil.example.com')]);
  },
);

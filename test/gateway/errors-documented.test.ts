import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES } from '#errors';
import { HTTP_ERRORS } from '#http';
import { A2A_ERRORS, A2A_GATEWAY_ERRORS } from '../../src/a2a/wire/errors.ts';
import { MCP_ERRORS } from '../../src/mcp/wire/errors-mcp.ts';
import { RPC_ERRORS } from '../../src/rpc/errors-rpc.ts';

const lines = readFileSync(new URL('../../docs/errors.md', import.meta.url), 'utf8').split('\n');
const rows = lines
  .map((line) => /^\| `(\w+)` \| (\d+) \| `(\w+)` \|/.exec(line))
  .filter((match) => match !== null)
  .map(([, code, status, type]) => ({ code, status: Number(status), type }));

test('docs/errors.md lists exactly the errors of the code, with their status and type', () => {
  expect(rows).toEqual(ERROR_CODES.map((code) => ({ code, ...HTTP_ERRORS[code] })));
});

test('and what they are on the JSON-RPC wires', () => {
  const documented = lines.filter((line) => /^\| `\w+` \| -\d+ \(\d+\) \|/.test(line));
  expect(documented).toEqual(
    ERROR_CODES.map((code) => {
      const [mcp, a2a, rpc] = [MCP_ERRORS[code], A2A_GATEWAY_ERRORS[code], RPC_ERRORS[code]];
      return `| \`${code}\` | ${mcp.code} (${mcp.status}) | ${a2a.code} (${a2a.rpcStatus}) | ${a2a.status} \`${a2a.reason}\` | ${rpc.code} (${rpc.status}) |`;
    }),
  );
});

test("and A2A's own", () => {
  const documented = lines.filter((line) => /^\| `\w+` \| -\d+ \| \d+ \|/.test(line));
  expect(documented).toEqual(
    Object.entries(A2A_ERRORS).map(
      ([name, { code, status, reason }]) => `| \`${name}\` | ${code} | ${status} | \`${reason}\` |`,
    ),
  );
});

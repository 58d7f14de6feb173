import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERROR_CODES, GatewayError, paymentOf } from '#errors';
import { HTTP_ERRORS } from '#http';
import { A2A_ERRORS, A2A_GATEWAY_ERRORS } from '../../../src/a2a/wire/errors.ts';
import { MCP_ERRORS } from '../../../src/mcp/wire/errors-mcp.ts';
import { toAnthropicError } from '../../../src/openai/messages/errors.ts';
import { RPC_ERRORS } from '../../../src/console/rpc/errors-rpc.ts';

const linesOf = (page: string) => readFileSync(new URL(`../../../docs/${page}`, import.meta.url), 'utf8').split('\n');
const lines = linesOf('reference/errors.md');
const rows = lines
  .map((line) => /^\| `(\w+)` \| (\d+) \| `(\w+)` \|/.exec(line))
  .filter((match) => match !== null)
  .map(([, code, status, type]) => ({ code, status: Number(status), type }));

test('docs/reference/errors.md lists exactly the errors of the code, with their status and type', () => {
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

test("docs/reference/messages.md has the type in Anthropic's API for exactly the statuses that have it", () => {
  const documented = linesOf('reference/messages.md')
    .map((line) => /^\| (\d{3}(?:, \d{3})*) \| `(\w+)`/.exec(line))
    .filter((match) => match !== null)
    .map(([, statuses, type]) => [type, statuses]);
  const statusesOf = new Map<string, Set<number>>();
  for (const code of ERROR_CODES) {
    const { status, body } = toAnthropicError(new GatewayError(code, ''), { id: 'req-1' });
    const { type } = body['error'] as { readonly type: string };
    statusesOf.set(type, (statusesOf.get(type) ?? new Set()).add(status));
  }
  const known = [...statusesOf].map(([type, statuses]) => [type, [...statuses].toSorted((a, b) => a - b).join(', ')]);
  expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(known));
  expect(documented).toHaveLength(known.length);
});

test('an error that is a 402 on JSON-RPC is about money, and its client gets payment terms', () => {
  const unpaid = ERROR_CODES.filter((code) => RPC_ERRORS[code].status === 402 || HTTP_ERRORS[code].status === 402);
  expect(ERROR_CODES.filter((code) => paymentOf(code) !== undefined)).toEqual(unpaid);
});

import { createMcpHandler } from '@modelcontextprotocol/server';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeHeaderValue, paramHeaderFault, standardHeaders } from '../../src/mcp/wire/param-headers.ts';
import { SCHEMAS, headerTools } from './support/header-tools.ts';
import { ENVELOPE } from './support/inbound.ts';

const deep = process.env['TOLLGATE_DEEP'] === '1';
const fault = (tool: string, args: unknown, headers: Readonly<Record<string, string | string[]>>) =>
  paramHeaderFault(SCHEMAS[tool], args, headers);

describe('Mcp-Param headers of a request', () => {
  it.each<readonly [string, string, unknown, Readonly<Record<string, string>>]>([
    ['of a tool that declares none', 'plain', { city: 'Oslo' }, {}],
    ['that say what the argument says', 'one', { city: 'Oslo' }, { 'mcp-param-city': 'Oslo' }],
    ['with white space around', 'one', { city: 'Oslo' }, { 'mcp-param-city': ' Oslo\t' }],
    ['in Base64', 'one', { city: 'Tromsø' }, { 'mcp-param-city': '=?base64?VHJvbXPDuA==?=' }],
    ['that only begin as Base64 does', 'one', { city: '=?base64?QQ==' }, { 'mcp-param-city': '=?base64?QQ==' }],
    ['that look like Base64 and are none', 'one', { city: 'QQ==' }, { 'mcp-param-city': 'QQ==' }],
    ['of an empty text', 'one', { city: '' }, { 'mcp-param-city': '' }],
    ['of an absent argument', 'one', {}, {}],
    ['of an argument that is null', 'one', { city: null }, {}],
    ['of an argument that no header can say', 'one', { city: ['Oslo'] }, {}],
    ['for an absent argument', 'one', {}, { 'mcp-param-city': 'Oslo' }],
    ['of a call without arguments', 'one', undefined, {}],
    ['of numbers in another spelling', 'all', { count: 42 }, { 'mcp-param-x-count': '42.0' }],
    ['of truth', 'all', { dry: false }, { 'mcp-param-dry': 'false' }],
    ['of properties of properties', 'all', { where: { street: { name: 'a' } } }, { 'mcp-param-street': 'a' }],
    ['of an integer that is not exact', 'all', { count: 2 ** 60 }, {}],
    ['of a tool whose schema is against the rules', 'inItems', { city: 'Oslo' }, {}],
    ['whose names the prototype has', 'one', { constructor: 'x' }, {}],
  ])('are right %s', (_name, tool, args, headers) => {
    expect(fault(tool, args, headers)).toBeNull();
  });

  it.each<readonly [string, string, unknown, Readonly<Record<string, string | string[]>>, string]>([
    [
      'a missing header',
      'one',
      { city: 'Oslo' },
      {},
      'the header Mcp-Param-City is missing, and the argument city has a value',
    ],
    [
      'another value',
      'one',
      { city: 'Oslo' },
      { 'mcp-param-city': 'oslo' },
      'the header Mcp-Param-City and the argument city differ',
    ],
    [
      'the header twice',
      'one',
      { city: 'Oslo' },
      { 'mcp-param-city': ['Oslo', 'Rome'] },
      'the header Mcp-Param-City and the argument city differ',
    ],
    [
      'Base64 without padding',
      'one',
      { city: 'Hello' },
      { 'mcp-param-city': '=?base64?SGVsbG8?=' },
      'the header Mcp-Param-City is not valid Base64 of UTF-8',
    ],
    [
      'Base64 of other letters',
      'one',
      { city: 'Hello' },
      { 'mcp-param-city': '=?base64?SGVs!!!bG8=?=' },
      'not valid Base64',
    ],
    ['Base64 that is no UTF-8', 'one', { city: '\uFFFD' }, { 'mcp-param-city': '=?base64?/w==?=' }, 'not valid Base64'],
    [
      'another number',
      'all',
      { count: 42 },
      { 'mcp-param-x-count': '42.5' },
      'Mcp-Param-x-Count and the argument count differ',
    ],
    [
      'a number that is none',
      'all',
      { count: 0 },
      { 'mcp-param-x-count': '' },
      'Mcp-Param-x-Count and the argument count differ',
    ],
    ['another truth', 'all', { dry: true }, { 'mcp-param-dry': 'True' }, 'Mcp-Param-Dry and the argument dry differ'],
    ['a missing header of a number', 'number', { count: 1.5 }, {}, 'the header Mcp-Param-x-Count is missing'],
    [
      'a missing header deep down',
      'all',
      { where: { street: { name: 'a' } } },
      {},
      'the argument where.street.name has a value',
    ],
  ])('are wrong with %s', (_name, tool, args, headers, wanted) => {
    expect(fault(tool, args, headers)).toContain(wanted);
  });

  it.each<readonly [string, unknown]>([
    ['no schema', undefined],
    ['true', true],
    ['a list', [{ 'x-mcp-header': 'A' }]],
    ['properties that are none', { properties: 1, items: [null, 1], $defs: [1] }],
  ])('are not looked at with %s for a schema', (_name, schema) => {
    expect(paramHeaderFault(schema, { city: 'Oslo' }, {})).toBeNull();
  });

  it('are not looked at in a schema that is too large', () => {
    const wide = {
      properties: Object.fromEntries(
        Array.from({ length: 20_000 }, (_, i) => [`p${i}`, { type: 'string', 'x-mcp-header': `H${i}` }]),
      ),
    };
    expect(paramHeaderFault(wide, { p1: 'x' }, {})).toBeNull();
    let nested: Record<string, unknown> = { type: 'string', 'x-mcp-header': 'Deep' };
    for (let i = 0; i < 5_000; i++) nested = { properties: { a: nested } };
    expect(() => paramHeaderFault(nested, {}, {})).not.toThrow();
  });

  it('are refused where a server of the SDK refuses them', { timeout: 600_000 }, async () => {
    const handler = createMcpHandler(() => headerTools());
    const word = fc.constantFrom(
      'Oslo',
      'Tromsø',
      '',
      ' a ',
      '=?base64?SGVsbG8=?=',
      '=?base64?SGVsbG8?=',
      '42',
      '42.0',
      'true',
      'Hello',
      '0',
    );
    const scalar = fc.oneof(
      word,
      fc.constantFrom<unknown>(42, 0, 1.5, 1e21, 2 ** 60, -0, true, false, null, ['Oslo'], { a: 1 }),
    );
    const args = fc.record(
      {
        city: scalar,
        count: scalar,
        dry: scalar,
        where: fc.oneof(scalar, fc.record({ street: fc.record({ name: scalar }) })),
      },
      { requiredKeys: [] },
    );
    const header = word.map((text) => (/[^\x20-\x7e]/.test(text) ? encodeHeaderValue(text) : text));
    const headers = fc.record(
      { 'mcp-param-city': header, 'mcp-param-x-count': header, 'mcp-param-dry': header, 'mcp-param-street': header },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...Object.keys(SCHEMAS)),
        args,
        headers,
        fc.boolean(),
        async (name, given, some, right) => {
          const params = { name, arguments: JSON.parse(JSON.stringify(given)) as unknown };
          const own = right ? standardHeaders('tools/call', params, SCHEMAS[name]) : {};
          const sent = new Headers({
            'content-type': 'application/json',
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': 'tools/call',
            'mcp-name': name,
            ...some,
          });
          for (const [key, text] of Object.entries(own)) sent.set(key, text);
          const body = JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'tools/call',
            params: { ...params, _meta: ENVELOPE },
          });
          const response = await handler.fetch(
            new Request('http://127.0.0.1/mcp', { method: 'POST', headers: sent, body }),
          );
          const refused = response.status === 400 && (await response.text()).includes('"code":-32020');
          expect(paramHeaderFault(SCHEMAS[name], params.arguments, Object.fromEntries(sent)) !== null).toBe(refused);
          if (right) expect(refused).toBe(false);
        },
      ),
      { numRuns: deep ? 20_000 : 300 },
    );
    await handler.close();
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { classify, type InboundHeaders } from '../../src/mcp/wire/classify.ts';
import { paramHeaderFault, standardHeaders } from '../../src/mcp/wire/param-headers.ts';
import { ENVELOPE, requestText } from './support/inbound.ts';
import { object, value } from '../foundation/wire/json/json-text.ts';
import { anyCharacter } from '../support/any-character.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 1_000_000 : 200;
const MIB = 1024 * 1024;
const STALL_MS = 1_000;

const KINDS = ['modern', 'modern-notification', 'initialize', 'legacy', 'bare', 'batch', 'refused'];
const word = fc.oneof(
  fc.constantFrom(
    '2026-07-28',
    '2025-11-25',
    'tools/call',
    'initialize',
    'add',
    '=?base64?',
    '=?base64?YQ==?=',
    '',
    '__proto__',
    'constructor',
  ),
  fc.string({ unit: anyCharacter, maxLength: 10 }),
);
const header = fc.option(word);
const headers: fc.Arbitrary<InboundHeaders> = fc.record({
  version: header,
  method: header,
  name: header,
  session: header,
  accept: header,
});
const weird = fc.oneof(fc.jsonValue({ maxDepth: 2 }), word, fc.constantFrom<unknown>(ENVELOPE, null, [], {}));
const body = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 40 }),
  object,
  value,
  fc
    .record(
      {
        jsonrpc: fc.oneof({ weight: 9, arbitrary: fc.constant<unknown>('2.0') }, weird),
        id: weird,
        method: weird,
        params: weird,
        result: weird,
        error: weird,
      },
      { requiredKeys: ['jsonrpc'] },
    )
    .map((message) => JSON.stringify(message)),
  fc
    .tuple(word, fc.record({ name: weird, arguments: weird, uri: weird }, { requiredKeys: [] }), weird)
    .map(([method, params, meta]) => requestText(method, params, meta)),
  fc
    .array(fc.oneof(value, fc.constant(requestText('tools/list', {}, null))), { maxLength: 4 })
    .map((texts) => `[${texts.join()}]`),
);

describe('whatever is posted', () => {
  it('is classified without an error', { timeout: 3_600_000 }, () => {
    fc.assert(
      fc.property(body, headers, (text, given) => {
        const inbound = classify(text, given);
        expect(KINDS).toContain(inbound.kind);
        if (inbound.kind !== 'refused') return;
        expect([400, 404]).toContain(inbound.status);
        expect(() => JSON.parse(inbound.idText) as unknown).not.toThrow();
        expect(JSON.stringify(inbound.error).length).toBeLessThan(2_000);
      }),
      { numRuns: runs },
    );
  });

  it('has its headers checked without an error', { timeout: 3_600_000 }, () => {
    const schema: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        weird,
        fc.record(
          {
            type: fc.constantFrom('string', 'integer', 'object', 'boolean', 'number'),
            'x-mcp-header': fc.oneof(fc.constantFrom('A', 'B', 'a b'), weird),
            properties: fc.oneof(weird, fc.dictionary(word, tie('schema'), { maxKeys: 3 })),
            items: tie('schema'),
            anyOf: fc.array(tie('schema'), { maxLength: 2 }),
            $defs: fc.oneof(weird, fc.dictionary(word, tie('schema'), { maxKeys: 2 })),
          },
          { requiredKeys: [] },
        ),
      ),
    })).schema;
    const given = fc.dictionary(
      fc.constantFrom('mcp-param-a', 'mcp-param-b'),
      fc.oneof(word, fc.array(word, { maxLength: 2 })),
    );
    fc.assert(
      fc.property(schema, weird, given, word, (inputSchema, args, sent, method) => {
        const fault = paramHeaderFault(inputSchema, args, sent);
        expect(fault === null || typeof fault === 'string').toBe(true);
        const own = standardHeaders(
          method === 'add' ? 'tools/call' : method,
          { name: method, arguments: args },
          inputSchema,
        );
        for (const [name, text] of Object.entries(own))
          if (name !== 'Mcp-Method') expect(text).toMatch(/^[\t\x20-\x7e]+$/);
      }),
      { numRuns: runs },
    );
  });

  it.each<readonly [string, string]>([
    [
      'deep arguments',
      requestText('tools/call', { name: 'a', arguments: 0 }).replace(':0', `:${'['.repeat(MIB)}${']'.repeat(MIB)}`),
    ],
    ['a deep batch', `${'['.repeat(MIB / 2)}${']'.repeat(MIB / 2)}`],
    ['a batch without end', '['.repeat(4 * MIB)],
    ['a batch of many', `[${'1,'.repeat(2 * MIB)}1]`],
    ['white space', ' '.repeat(4 * MIB)],
    ['a long method', requestText('x'.repeat(4 * MIB))],
    ['a long text of escapes', requestText('tools/call', { name: 'a', arguments: { a: '\\"'.repeat(MIB) } })],
  ])('is classified in time linear in its length: %s', (_name, text) => {
    const cpuMs = () => {
      const before = process.threadCpuUsage();
      classify(text, { version: '2026-07-28', method: 'x', name: 'x', session: null, accept: null });
      const { user, system } = process.threadCpuUsage(before);
      return (user + system) / 1000;
    };
    // Once in a while a collection of garbage falls into a run.
    expect(Math.min(cpuMs(), cpuMs(), cpuMs())).toBeLessThan(STALL_MS);
  });
});

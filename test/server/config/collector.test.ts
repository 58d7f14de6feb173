import { describe, expect, test } from 'vitest';
import { secretsOf } from '#config';
import { otlpReceiver } from '../../../src/console/observe/otlp.ts';
import { load, problemsOf } from './load.ts';

// The variables of OpenTelemetry are often set for every program of a machine: what its SDKs take stops no start.

const headersOf = (text: string) => {
  const { otlpHeaders } = load('', { env: { OTEL_EXPORTER_OTLP_HEADERS: text } });
  return otlpReceiver('http://collector:4318', otlpHeaders, 'logs').headers;
};

describe('headers for the collector', () => {
  test.each([
    ['authorization=Bearer abc', { authorization: 'Bearer abc' }],
    ['a=b,', { a: 'b' }],
    [' a = b ,, c=d%20e ', { a: 'b', c: 'd e' }],
    [',', {}],
  ])('%j is taken', (text, headers) => {
    expect(headersOf(text)).toEqual(headers);
  });

  test.each([
    ['x=a%0Ab', 'holds characters that no header may have'],
    ['x=%E2%82%AC', 'holds characters that no header may have'],
    ['x=%01', 'holds characters that no header may have'],
    ['a=b,Content-Length=5', 'names content-length, which each post has of its own'],
    ['x=%ff', 'has a value whose percent-encoding is not UTF-8'],
    ['=b', 'is not a list of headers'],
    ['authorization: Basic abc', 'is not a list of headers'],
  ])('%j is refused', (text, wrong) => {
    expect(problemsOf(`[telemetry]\notlp_headers = ${JSON.stringify(text)}`)).toMatchObject([{ wrong }]);
  });
});

describe('OTEL_LOGS_EXPORTER', () => {
  test.each([
    ['console', 'none'],
    ['otlp', 'otlp'],
    ['console,otlp', 'otlp'],
    ['none', 'none'],
  ])('%s is %s, without an address of a collector too', (text, exporter) => {
    expect(load('', { env: { OTEL_LOGS_EXPORTER: text } }).logsExporter).toBe(exporter);
  });

  test('the file says what there is', () => {
    expect(problemsOf('[telemetry]\nlogs_exporter = "console"')).toMatchObject([{ key: 'telemetry.logs_exporter' }]);
    expect(problemsOf('[telemetry]\nlogs_exporter = "otlp"')).toMatchObject([{ key: 'telemetry.otlp_endpoint' }]);
  });
});

describe('a password in an address', () => {
  test.each(['telemetry.otlp_endpoint = "http://u%zz:p@host"', 'database.url = "postgres://u:100%@host/db"'])(
    '%s is refused before it is used',
    (line) => {
      expect(problemsOf(line)).toMatchObject([
        { wrong: expect.stringMatching(/has a user or password that is not percent-encoded$/) as string },
      ]);
    },
  );

  test('of the collector is a secret, as it is and as it is written', () => {
    const config = load('telemetry.otlp_endpoint = "http://me:pass%20word@host"');
    expect(secretsOf(config)).toEqual(expect.arrayContaining(['pass word', 'pass%20word']));
  });
});

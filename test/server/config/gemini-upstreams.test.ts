import { describe, expect, test } from 'vitest';
import { keyHeaders, NATIVE_APIS, upstreamPath } from '#config';

// Where a provider has the Gemini API, and which header has its key there.

describe('the address of an answer', () => {
  test.each([
    ['https://generativelanguage.googleapis.com/v1beta/openai', 'https://generativelanguage.googleapis.com'],
    ['https://generativelanguage.googleapis.com/v1beta', 'https://generativelanguage.googleapis.com'],
    ['https://gateway.example/api/v1', 'https://gateway.example/api'],
    ['https://gateway.example/v1', 'https://gateway.example'],
    ['https://proxy.example/google', 'https://proxy.example/google'],
    ['', ''],
  ])('of %s', (base, root) => {
    expect(upstreamPath(base, NATIVE_APIS.gemini.path('gemini-3', false))).toBe(
      `${root}/v1beta/models/gemini-3:generateContent`,
    );
    expect(upstreamPath(base, '/chat/completions')).toBe(`${base}/chat/completions`);
  });

  test('has one name of a model', () => {
    expect(NATIVE_APIS.gemini.path('models/a/b:floor', true)).toBe(
      '/v1beta/models/a%2Fb%3Afloor:streamGenerateContent?alt=sse',
    );
    expect(NATIVE_APIS.gemini.path('../../files', false)).toBe('/v1beta/models/..%2F..%2Ffiles:generateContent');
  });
});

test.each([
  ['AIzaSy', { 'x-goog-api-key': 'AIzaSy' }],
  ['AQ.Ab8', { 'x-goog-api-key': 'AQ.Ab8' }],
  ['ya29.a0', { authorization: 'Bearer ya29.a0' }],
  ['svc-sk-x', { authorization: 'Bearer svc-sk-x', 'x-goog-api-key': 'svc-sk-x' }],
  [null, {}],
])('the key %s', (key, headers) => {
  expect(keyHeaders(key, NATIVE_APIS.gemini.path('m', true))).toEqual(headers);
});

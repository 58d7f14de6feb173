import { ApiError, GoogleGenAI } from '@google/genai';
import { beforeAll, describe, expect, test } from 'vitest';
import { modelBlock, UNHURRIED } from '../../support/spine.ts';
import { startTranscripts } from '../translated/support/transcript-upstream.ts';
import { ofFile, spineOfFile } from '../../support/of-file.ts';

// Errors as Google's SDK shows them.

const MODEL = 'acme/thinker';
let client: GoogleGenAI;
const upstream = ofFile(startTranscripts, (one) => one.stop());
const spine = spineOfFile(() => {
  const params = 'forward = ["reasoning"]';
  return {
    toml:
      UNHURRIED +
      modelBlock({ name: MODEL, provider: 'Acme', url: upstream.url, params }).replace(
        'context_length',
        'input_modalities = ["text", "image", "audio", "file"]\ncontext_length',
      ),
  };
});
beforeAll(() => {
  client = clientAt(`${spine.origin}/api`);
});

const clientAt = (baseUrl: string, apiKey = spine.key) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl } });

describe('errors', () => {
  const failure = async (by: GoogleGenAI, ask: object = {}) => {
    const error: unknown = await by.models
      .generateContent({ model: MODEL, contents: 'x', ...ask })
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(ApiError);
    const { status, message } = error as ApiError;
    return { status, ...(JSON.parse(message) as { error: object }) };
  };

  test('a wrong key', async () => {
    expect(await failure(clientAt(`${spine.origin}/api`, 'svc-sk-wrong'))).toMatchObject({
      status: 401,
      error: {
        code: 401,
        status: 'UNAUTHENTICATED',
        details: expect.arrayContaining([
          expect.objectContaining({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'UNAUTHORIZED' }),
        ]) as unknown,
      },
    });
  });

  test('a model that nobody serves', async () => {
    expect(await failure(client, { model: 'acme/none' })).toMatchObject({
      status: 404,
      error: { status: 'NOT_FOUND', code: 404 },
    });
    await expect(client.models.countTokens({ model: 'acme/none', contents: 'x' })).rejects.toMatchObject({
      status: 404,
      message: expect.stringContaining('"NOT_FOUND"') as unknown,
    });
  });

  test('no money', async () => {
    const { key } = await spine.tenant('poor', '0.000001');
    expect(await failure(clientAt(`${spine.origin}/api`, key))).toMatchObject({
      status: 402,
      error: { status: 'FAILED_PRECONDITION' },
    });
  });

  test.each([
    ['/v1', undefined],
    ['/api/v1', undefined],
    ['/wrong', 'v1beta'],
    ['/api', 'v2'],
    ['/api', 'v1alpha'],
  ])('a base URL %s with the version %s: the right address', async (path, apiVersion) => {
    const wrong = new GoogleGenAI({
      apiKey: spine.key,
      httpOptions: { baseUrl: spine.origin + path },
      ...(apiVersion === undefined ? {} : { apiVersion }),
    });
    const told = await failure(wrong);
    expect(told).toMatchObject({ status: 404, error: { status: 'NOT_FOUND' } });
    expect(JSON.stringify(told)).toContain('It is at /api/v1beta/models/{model}:generateContent');
  });
});

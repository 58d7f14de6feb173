import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const blockWith = (base: string) => modelBlock({ 'params.api_base': JSON.stringify(base) });

describe('api_base', () => {
  test.each([
    ['https://api.example.com', 'https://api.example.com/v1'],
    ['https://api.example.com/', 'https://api.example.com/v1'],
    ['https://api.example.com/v1', 'https://api.example.com/v1'],
    ['https://api.example.com/v1//', 'https://api.example.com/v1'],
    ['https://api.example.com/api/paas/v4/', 'https://api.example.com/api/paas/v4'],
    ['https://api.example.com/openai', 'https://api.example.com/openai'],
    ['http://127.0.0.1:11434', 'http://127.0.0.1:11434/v1'],
    ['http://[::1]:8080/v1', 'http://[::1]:8080/v1'],
    ['HTTPS://API.Example.COM:443/v1', 'https://api.example.com/v1'],
  ])('%s is %s', (written, kept) => {
    expect(load(blockWith(written)).services[0]!.target).toMatchObject({ url: kept });
  });

  test.each([
    '',
    'api.example.com/v1',
    'ftp://api.example.com',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://',
    'https://user:hunter2@api.example.com/v1',
    'https://hunter2@',
    'https://api.example.com/v1?key=hunter2',
    'https://api.example.com/v1#hunter2',
    'https://api.example.com/v1/chat/completions',
    `https://api.example.com/${'x'.repeat(3000)}`,
  ])('%s is refused', (written) => {
    const problems = problemsOf(blockWith(written));
    expect(problems).toMatchObject([{ key: 'models[0].params.api_base' }]);
    expect(JSON.stringify(problems)).not.toContain('hunter2');
  });

  test('a whole endpoint is shortened in the hint', () => {
    expect(problemsOf(blockWith('https://api.example.com/v2/chat/completions/'))[0]!.right).toContain(
      'https://api.example.com/v2',
    );
  });
});

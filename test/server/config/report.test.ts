import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/server/config/file.ts';
import { ConfigError } from '../../../src/server/config/problem.ts';
import { load, problemsOf } from './load.ts';

const BROKEN = `# A file with one mistake of each kind.
[server]
port = "http"
hots = "0.0.0.0"

[limits]
burst = 1.5

[[models]]
name = "good"
display_name = "Good"
provider_name = "Acme"
[models.pricing]
prompt = 1
completion = 2
[models.params]
model = "m"
api_base = "http://localhost"
api_key = ""

[[models]]
name = "../bad"
display_name = """
many
provider_name = "not this line"
"""
provider_name = "Acme "
pricing = { prompt = 20_000, complete = 1 }
params.model = "m"
params.api_base = "http://localhost"
params.api_key = "std::env::MISSING_KEY"
`;

describe('the report', () => {
  test('has every problem with its line', () => {
    const found = problemsOf(BROKEN).map(({ line, key }) => `${line} ${key}`);
    expect(found).toEqual([
      '4 server.hots',
      '3 server.port',
      '7 limits.burst',
      '28 models[1].pricing.complete',
      '22 models[1].name',
      '23 models[1].display_name',
      '27 models[1].provider_name',
      '28 models[1].pricing.prompt',
      '28 models[1].pricing.completion',
      '31 models[1].params.api_key',
    ]);
  });

  test('reads well', () => {
    const text = new ConfigError(problemsOf('[server]\nprot = 1\nport = 99999\n', { env: { PORT: 'x' } })).message;
    expect(text).toBe(
      [
        'The configuration has 3 problems:',
        '',
        '  tollgate.toml:2  server.prot',
        '    is not an option',
        '    → did you mean "port"?',
        '',
        '  tollgate.toml:3  server.port',
        '    is 99999',
        '    → a whole number, 0 to 65535',
        '',
        '  environment variable PORT',
        '    is "x"',
        '    → a whole number, 0 to 65535',
      ].join('\n'),
    );
  });

  test('names a missing variable', () => {
    expect(problemsOf(BROKEN).at(-1)).toMatchObject({
      wrong: 'reads the environment variable MISSING_KEY, which is not set',
      right: expect.stringContaining('set MISSING_KEY'),
    });
  });

  test('an empty variable counts as missing, and an inherited one does not exist', () => {
    expect(problemsOf('[server]\nadmin_key = "std::env::EMPTY"', { env: { EMPTY: '' } })[0]!.wrong).toContain('EMPTY');
    expect(problemsOf('[server]\nadmin_key = "std::env::constructor"')[0]!.wrong).toContain('constructor');
  });

  test('tells where text is no TOML, without repeating the line', () => {
    const problems = problemsOf('[server]\nport = 1\nadmin_key = "hunter2-hunter2\n');
    expect(problems).toMatchObject([{ file: 'tollgate.toml', line: 3 }]);
    expect(new ConfigError(problems).message).not.toContain('hunter2');
  });

  test('stays short however many problems there are', () => {
    const many = Array.from({ length: 20_000 }, (_, index) => `k${index} = 1`).join('\n');
    try {
      load(`[server]\n${many}`);
      expect.unreachable();
    } catch (error) {
      expect((error as ConfigError).message.length).toBeLessThan(20_000);
    }
  });
});

describe('a file', () => {
  const directory = mkdtempSync(join(tmpdir(), 'tollgate-config-'));
  const problemOf = (file: string) => {
    try {
      loadConfig({ file, env: {}, mode: 'production' });
    } catch (error) {
      return (error as ConfigError).problems[0];
    }
  };

  test('is read from disk', () => {
    const file = join(directory, 'good.toml');
    writeFileSync(file, '[server]\nport = 1234\n');
    expect(loadConfig({ file, env: {}, mode: 'development' })).toMatchObject({ mode: 'development', port: 1234 });
  });

  test('that does not exist, or is a directory, is said so', () => {
    expect(problemOf(join(directory, 'absent.toml'))).toMatchObject({
      file: join(directory, 'absent.toml'),
      wrong: 'does not exist',
    });
    expect(problemOf(directory)).toMatchObject({ wrong: 'is not a file' });
  });

  test('is not needed', () => {
    expect(loadConfig({ file: null, env: {}, mode: 'production' })).toMatchObject({ port: 8402, services: [] });
  });
});

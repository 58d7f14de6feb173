import { describe, expect, test } from 'vitest';
import { providerProblemsOf as problemsOf } from '../../providers/proxy/load.ts';
import { block, load, problemsOf as gatewayProblemsOf } from './load.ts';

describe('the tools of an MCP server', () => {
  test('have an address or a command', () => {
    expect(problemsOf(block('tools', { endpoint: null }))).toMatchObject([
      { key: 'tools[0].endpoint', wrong: 'is missing' },
    ]);
    expect(problemsOf(block('tools', { command: '"npx"' }))).toMatchObject([
      { key: 'tools[0].command', wrong: 'stands beside endpoint', right: 'one of the two' },
    ]);
  });

  test.each([
    ['args', '["x"]'],
    ['env', '{ A = "b" }'],
    ['cwd', '"x"'],
    ['shared', 'false'],
    ['sessions_max', '16'],
    ['session_idle_ms', '300000'],
    ['roots', 'false'],
  ])('have no %s without a command', (key, value) => {
    expect(problemsOf(block('tools', { [key]: value }))).toMatchObject([
      { key: `tools[0].${key}`, wrong: 'is given without command' },
    ]);
  });

  test('have no api_key without an address', () => {
    expect(problemsOf(block('tools', { endpoint: null, command: '"npx"', api_key: '"k"' }))).toMatchObject([
      { key: 'tools[0].api_key' },
    ]);
  });

  test('may not be a command in the file of a gateway', () => {
    const [problem] = gatewayProblemsOf(block('tools', { endpoint: null, command: '"npx"' }));
    expect(problem).toMatchObject({ key: 'tools[0].command', line: 5, right: 'run it behind `tollgate provide`' });
    expect(load(block('tools')).services).toMatchObject([
      { target: { kind: 'http', url: 'http://127.0.0.1:9/mcp', apiKey: null } },
    ]);
  });

  test('are told apart by problems of their own, all at once', () => {
    const text = block('tools', {
      'pricing.per_call': '-1',
      'pricing.tools.a': '-1',
      'pricing.tools.b': '0',
      'pricing.tools.c': '"x"',
      args: '[1]',
      endpoint: '"x"',
    });
    expect(problemsOf(text).map(({ key }) => key)).toEqual([
      'tools[0].pricing.per_call',
      'tools[0].pricing.tools.a',
      'tools[0].pricing.tools.c',
      'tools[0].endpoint',
      'tools[0].args',
    ]);
  });

  test('show nothing of a secret that stands in the wrong place', () => {
    const text = block('tools', {
      endpoint: null,
      command: '["canary7f3a"]',
      args: '[["canary7f3a"]]',
      cwd: '["canary7f3a"]',
      env: '["canary7f3a"]',
    });
    expect(JSON.stringify(problemsOf(text))).not.toContain('canary7f3a');
  });
});

import { describe, expect, test } from 'vitest';
import { load, modelBlock, problemsOf } from './load.ts';

const rightOf = (text: string) => problemsOf(text)[0]!.right;

describe('an option that does not exist', () => {
  test.each([
    ['[server]\nprot = 1', 'did you mean "port"?'],
    ['[server]\nlogLevel = "info"', 'did you mean "log_level"?'],
    ['[sever]\nport = 1', 'did you mean [server]?'],
    ['port = 1', 'put it below [server]'],
    ['[[model]]\nname = "x"', 'did you mean [models]?'],
    [modelBlock({ displayname: '"x"' }), 'did you mean "display_name"?'],
    [modelBlock({ prompt: '1' }), 'did you mean "pricing.prompt"?'],
    [modelBlock({ 'pricing.completions': '1' }), 'did you mean "completion"?'],
    [modelBlock({ 'params.api-key': '"k"' }), 'did you mean "api_key"?'],
  ])('%j → %s', (text, right) => {
    expect(rightOf(text)).toBe(right);
  });

  test('that is near to nothing gets the list', () => {
    expect(rightOf('[server]\nunheard_of = 1')).toMatch(/^one of host, port/);
  });

  test('is also one whose name has the dot that stands for a table', () => {
    const [problem] = problemsOf(modelBlock().replace('name =', '"pricing.image" = 1\nname ='));
    expect(problem).toMatchObject({
      line: 2,
      key: 'models[0].pricing.image',
      wrong: 'is not an option',
      right: 'did you mean "pricing.image"?',
    });
  });

  test("the provider proxy's section is told from a mistake", () => {
    expect(problemsOf('[router]\nurl = "http://x"')[0]!.wrong).toBe('is for the provider proxy');
  });

  test.each([
    '__proto__ = 1',
    '[__proto__]\nport = 1',
    '[server]\n__proto__ = 1',
    '[server.constructor]\nx = 1',
    '[constructor.prototype]\nx = 1',
    modelBlock({ __proto__x: '1' }),
    '[server]\n"x\\u202ey" = 1',
  ])('is refused and changes nothing: %j', (text) => {
    const [problem] = problemsOf(text);
    expect(problem!.key).not.toContain(String.fromCodePoint(0x202e));
    expect(({} as Record<string, unknown>)['port']).toBeUndefined();
    expect(load('').port).toBe(8402);
  });
});

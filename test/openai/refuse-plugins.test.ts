import { describe, expect, it } from 'vitest';
import type { ChatBody } from '../../src/openai/request/chat-schema.ts';
import { refusePlugins } from '../../src/openai/request/refuse-plugins.ts';

const body = (plugins: unknown): ChatBody => ({ model: 'm', messages: [], plugins });

describe('plugins of another router', () => {
  it.each([
    [[{ id: 'web' }], 'plugins[0]', 'There is no plugin "web" here. Leave plugins out'],
    [
      [
        { id: 'web', enabled: false },
        { id: 'file-parser', enabled: true },
      ],
      'plugins[1]',
      'There is no plugin "file-parser" here',
    ],
    [['web'], 'plugins[0]', 'There is no plugin here'],
    [[null], 'plugins[0]', 'There is no plugin here'],
  ])('are refused where they ask for something: %j', (plugins, param, words) => {
    expect(() => refusePlugins(body(plugins))).toThrow(
      expect.objectContaining({ code: 'unprocessable', param, message: expect.stringContaining(words) as string }),
    );
  });

  it.each([[undefined], [null], [[]], [[{ id: 'web', enabled: false }]], [{}]])(
    'pass where they ask for nothing: %j',
    (plugins) => {
      expect(() => refusePlugins(body(plugins))).not.toThrow();
    },
  );
});

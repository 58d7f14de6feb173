import { describe, expect, it } from 'vitest';
import type { ChatBody } from '../../src/openai/chat/chat-schema.ts';
import { refusePlugins } from '../../src/openai/chat/request/refusals.ts';

const body = (plugins: unknown): ChatBody => ({ model: 'm', messages: [], plugins });

describe('plugins of another router', () => {
  it.each([
    [[{ id: 'web' }], 'plugins[0]', 'This gateway has no plugin "web". Remove plugins'],
    [
      [
        { id: 'web', enabled: false },
        { id: 'file-parser', enabled: true },
      ],
      'plugins[1]',
      'This gateway has no plugin "file-parser"',
    ],
    [['web'], 'plugins[0]', 'This gateway has no plugin'],
    [[null], 'plugins[0]', 'This gateway has no plugin'],
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

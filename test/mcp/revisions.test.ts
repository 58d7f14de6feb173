import * as sdk from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import {
  ERROR,
  isModernEra,
  LEGACY,
  LEGACY_METHODS,
  META,
  MODERN,
  MODERN_METHODS,
  modernStatusOf,
} from '../../src/mcp/wire/revisions.ts';

describe('the revisions of MCP', () => {
  it('are those of the SDK', () => {
    expect(LEGACY[0]).toBe(sdk.LATEST_PROTOCOL_VERSION);
    expect(sdk.SUPPORTED_PROTOCOL_VERSIONS).toEqual(expect.arrayContaining([...LEGACY]));
    expect(LEGACY.some(isModernEra)).toBe(false);
    expect(isModernEra(MODERN)).toBe(true);
  });

  it('bill tool calls and nothing else', () => {
    for (const methods of [MODERN_METHODS, LEGACY_METHODS])
      expect(Object.keys(methods).filter((method) => methods[method]!.billing !== 'free')).toEqual(['tools/call']);
  });

  it('know no method that only Object.prototype has', () => {
    for (const name of ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf']) {
      expect(MODERN_METHODS[name]).toBeUndefined();
      expect(LEGACY_METHODS[name]).toBeUndefined();
    }
  });

  it('have the reserved keys of the SDK', () => {
    expect(META).toMatchObject({
      version: sdk.PROTOCOL_VERSION_META_KEY,
      capabilities: sdk.CLIENT_CAPABILITIES_META_KEY,
      clientInfo: sdk.CLIENT_INFO_META_KEY,
      serverInfo: sdk.SERVER_INFO_META_KEY,
      logLevel: sdk.LOG_LEVEL_META_KEY,
      subscriptionId: sdk.SUBSCRIPTION_ID_META_KEY,
      relatedTask: sdk.RELATED_TASK_META_KEY,
    });
  });

  it('have a status for an error that is a whole reply', () => {
    expect(
      [ERROR.methodNotFound, ERROR.headerMismatch, ERROR.missingCapability, ERROR.invalidParams, ERROR.internal, 7].map(
        modernStatusOf,
      ),
    ).toEqual([404, 400, 400, 200, 200, 200]);
  });
});

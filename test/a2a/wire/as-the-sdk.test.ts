import { StreamResponse } from '@a2a-js/sdk';
import {
  isV1JsonRpcMethod,
  legacyJsonRpcToV1Method,
  legacyPushNotificationToV1StreamResponse,
} from '@a2a-js/sdk/compat/v0_3';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { METHODS, type A2aOperation } from '../../../src/a2a/wire/protocol.ts';
import { translateParams, translateEvent, translateResult } from '../../../src/a2a/wire/translate.ts';
import { versions } from './support/arbitraries.ts';
import {
  codec,
  sdkCardTo03,
  sdkCardTo10,
  sdkEventTo03,
  sdkPushListTo03,
  sdkSendTo03,
  sdkSendTo10,
  sdkSentTo10,
} from './support/sdk-translation.ts';

const runs = process.env['TOLLGATE_DEEP'] === '1' ? 20_000 : 200;
const VALID = versions({ extras: false });
const same = (property: fc.IAsyncProperty<[unknown]>) => fc.assert(property, { numRuns: runs });

/**
 * The SDK calls no status final but the terminal ones; 1.0 ends the stream at the interrupted ones as well, and
 * clients of 0.3 wait for the word.
 */
function withoutFinal(event: unknown): unknown {
  const { final: _final, ...rest } = event as Record<string, unknown>;
  return rest;
}

describe('translates as the official SDK does', () => {
  it('names of methods', () => {
    for (const [operation, name] of Object.entries(METHODS['0.3']))
      expect(METHODS['1.0'][operation as A2aOperation]).toBe(legacyJsonRpcToV1Method(name));
    for (const name of Object.values(METHODS['1.0'])) expect(isV1JsonRpcMethod(name)).toBe(true);
    expect(Object.keys(METHODS['1.0'])).toHaveLength(Object.keys(METHODS['0.3']).length + 1);
  });

  it('events from 1.0 to 0.3', () =>
    same(
      fc.asyncProperty(VALID['1.0'].event, async (event) => {
        expect(withoutFinal(translateEvent('1.0', '0.3', event))).toEqual(withoutFinal(await sdkEventTo03(event)));
      }),
    ));

  it('the end of a stream of 0.3, where the task has ended', async () => {
    for (const state of ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED', 'WORKING', 'SUBMITTED', 'UNSPECIFIED']) {
      const event = { statusUpdate: { taskId: 't', contextId: 'c', status: { state: `TASK_STATE_${state}` } } };
      expect(translateEvent('1.0', '0.3', event)).toEqual(await sdkEventTo03(event));
    }
  });

  it('events from 0.3 to 1.0', () => {
    fc.assert(
      fc.property(VALID['0.3'].event, (event) => {
        const theirs = StreamResponse.toJSON(legacyPushNotificationToV1StreamResponse(event));
        expect(codec.event(translateEvent('0.3', '1.0', event))).toEqual(theirs);
      }),
      { numRuns: runs },
    );
  });

  it('results of a send from 0.3 to 1.0', () =>
    same(
      fc.asyncProperty(VALID['0.3'].sent, async (sent) => {
        expect(codec.event(translateResult('send', '0.3', '1.0', sent))).toEqual(await sdkSentTo10(sent));
      }),
    ));

  it('parameters of a send from 0.3 to 1.0', () =>
    same(
      fc.asyncProperty(VALID['0.3'].send, async (params) => {
        expect(codec.send(translateParams('send', '0.3', '1.0', params))).toEqual(await sdkSendTo10(params));
      }),
    ));

  it('parameters of a send from 1.0 to 0.3', () =>
    same(
      fc.asyncProperty(VALID['1.0'].send, async (params) => {
        const theirs = (await sdkSendTo03(params)) as { configuration: Record<string, unknown> };
        const ours = translateParams('send', '1.0', '0.3', params) as typeof theirs;
        // The SDK writes an empty list where no modes are asked for.
        expect({ ...ours, configuration: { acceptedOutputModes: [], ...ours.configuration } }).toEqual(theirs);
      }),
    ));

  it('push notification configurations from 1.0 to 0.3', () =>
    same(
      fc.asyncProperty(fc.array(VALID['1.0'].push, { maxLength: 2 }), async (configs) => {
        expect(translateResult('push-list', '1.0', '0.3', { configs })).toEqual(
          await sdkPushListTo03(configs as unknown[]),
        );
      }),
    ));

  it('agent cards from 1.0 to 0.3', () =>
    same(
      fc.asyncProperty(VALID['1.0'].card, async (card) => {
        expect(translateResult('card', '1.0', '0.3', card)).toEqual(await sdkCardTo03(card));
      }),
    ));

  it('agent cards from 0.3 to 1.0', () =>
    same(
      fc.asyncProperty(VALID['0.3'].card, async (card) => {
        expect(codec.card(translateResult('card', '0.3', '1.0', card))).toEqual(await sdkCardTo10(card));
      }),
    ));
});

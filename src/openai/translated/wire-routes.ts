import type { FastifyPluginAsync } from 'fastify';
import { requireAdmission } from '#auth';
import { takeBytes } from '#call';
import { PARSED_JSON } from '#http';
import type { RoutedBody } from './as-native.ts';
import type { ChatWire } from './chat-wire.ts';
import { addCountRoute, type CountedWire } from './count-route.ts';
import { addTranslatedRoute } from './translated-route.ts';
import type { WireDeps } from './wire-request.ts';

export const wireRoutes =
  <B extends RoutedBody>(deps: WireDeps, wires: readonly ChatWire<B>[], counted?: CountedWire<B>): FastifyPluginAsync =>
  async (app) => {
    takeBytes(app, deps.config.limits.chatBodyBytesMax, PARSED_JSON);
    await app.register(async (paid) => {
      const admissionOf = requireAdmission(paid, deps.pipeline.admit, true);
      for (const wire of wires) addTranslatedRoute(paid, deps, admissionOf, wire);
    });
    // It has a rate limit of its own.
    if (counted !== undefined) await app.register(async (free) => addCountRoute(free, deps, counted));
  };

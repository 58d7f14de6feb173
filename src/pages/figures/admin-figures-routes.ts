import type { FastifyPluginAsync } from 'fastify';
import type { RollUp } from '#analytics';
import type { AdminGate } from '#auth';
import { dataOf, objectOf } from '../answer-schemas.ts';

interface AdminFiguresDeps {
  readonly gate: AdminGate;
  readonly rollUp: Pick<RollUp, 'rebuild'>;
}

/** The operator's routes for the figures of calls. Register it under `/admin/v1`. */
export function adminFiguresRoutes({ gate, rollUp }: AdminFiguresDeps): FastifyPluginAsync {
  return async (app) => {
    app.addHook('onRequest', gate);
    const answer = objectOf({
      running: { type: 'boolean', description: 'It goes on.' },
      as_of: { type: ['string', 'null'], description: 'null while it runs.' },
    });
    const schema = {
      summary: 'Make the figures anew',
      operationId: 'rebuildAnalytics',
      description:
        'Recomputes the figures from all calls of the journal while the gateway serves calls. The figures are incomplete until this is done.',
      tags: ['Administration'],
      security: [{ bearer: [] }],
      response: { 202: { description: 'It has begun', ...dataOf(answer) } },
    };
    app.post('/analytics/rebuild', { schema, config: { adminRole: 'configure' } }, async (_request, reply) => {
      await rollUp.rebuild();
      return reply.code(202).send({ data: { running: true, as_of: null } });
    });
  };
}

import type { FastifyPluginAsync } from 'fastify';
import { queueRoutes, type QueueDeps } from './doors/queue-routes.ts';
import { taskRoutes, type TaskRoutesDeps } from './doors/task-routes.ts';

/** All doors of videos. Register it under `/api/v1`. */
export function videoRoutes(deps: QueueDeps & TaskRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    await app.register(queueRoutes(deps));
    await app.register(taskRoutes(deps));
  };
}

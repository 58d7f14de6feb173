import type { PagePath } from './page-paths.ts';

const SERVICES = '/api/v1/services';
const ANALYTICS = '/api/v1/analytics/public';
const OF_SERVICES = '/api/v1/analytics/service';

/**
 * Requests of a page for what it shows first, by their paths as `web/src/api/` asks for them. The browser begins them
 * while it still loads the scripts. Answers that may be large and are shown further down, such as the schemas of tools,
 * are left to the page. `rest` is the end of the path that a `*` stands for.
 */
export function earlyRequests(
  { path, service }: Pick<PagePath, 'path' | 'service'>,
  rest: string,
  analytics: boolean,
): readonly string[] {
  const name = rest.split('/').map(encodeURIComponent).join('/');
  if (service) return [`${SERVICES}/${service}/${name}`, ...(analytics ? [`${OF_SERVICES}/${service}/${name}`] : [])];
  switch (path) {
    case '/marketplace':
      return [SERVICES, ...(analytics ? [ANALYTICS, OF_SERVICES] : [])];
    case '/providers':
      return ['/api/v1/providers'];
    case '/providers/*':
      return [`/api/v1/providers/${name}`];
    default:
      return [];
  }
}

import type { PagePath } from './page-paths.ts';

const SERVICES = '/api/v1/services';
const ANALYTICS = '/api/v1/analytics/public';
const OF_SERVICES = '/api/v1/analytics/service';

/**
 * Returns the API requests for what a page shows first, with the same paths as in `web/src/api/`. The browser starts
 * them while it still loads the scripts. Large answers that are shown further down, such as schemas of tools, are not
 * among them. `rest` is the part of the path that the `*` matches.
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

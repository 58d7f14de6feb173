/** The icon: a barrier on its post. */
export const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#14281d"/>' +
  '<rect x="7" y="9" width="4" height="16" rx="1.5" fill="#f4c95d"/><rect x="9" y="11" width="18" height="4" rx="2" fill="#fff"/>' +
  '<rect x="14" y="11" width="4" height="4" fill="#1f7a4d"/><rect x="22" y="11" width="3" height="4" fill="#1f7a4d"/></svg>';

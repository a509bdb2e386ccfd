/** Signed URLs, whose signature is new each time; as `setun models` has them. */

/** Fields that sign a URL, of which each store has one. */
const SIGNATURE = /^(signature|sig|x-(amz|goog|oss)-signature)$/;

/** Further fields of signed URLs: S3, CloudFront, Google Cloud, Alibaba Cloud and Azure. */
const SIGNED_FIELD = new RegExp(
  "^(x-(amz|goog|oss)-.*|awsaccesskeyid|googleaccessid|ossaccesskeyid|security-token|expires|hash-algorithm|" +
    "key-pair-id|policy|s[pretsv]|spr|srt|sip|ses|sdd|scid|saoid|suoid|skoid|sktid|sk[tesv])$",
);

/** A query without the fields of a signature. A query without a signature stays as it is. */
export function unsignedQuery(query: string): string {
  const fields = query.split("&");
  const nameOf = (field: string) => (field.split("=")[0] ?? "").toLowerCase();
  if (!fields.some((field) => SIGNATURE.test(nameOf(field)))) return query;
  const isKept = (field: string) =>
    field !== "" && !SIGNATURE.test(nameOf(field)) && !SIGNED_FIELD.test(nameOf(field));
  return fields.filter(isKept).join("&");
}

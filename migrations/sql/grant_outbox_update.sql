-- the claim and its outcome; never the event itself. It also allows the row locks that a claim takes
grant update (claimed_by, claim_expires_at, export_attempts, exported_at, last_error, next_attempt_at)
    on :"schema".aksara_operation_outbox to :"role";

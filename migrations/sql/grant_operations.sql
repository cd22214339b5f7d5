-- which application an event belongs to; nothing of what the operation does
grant select (id, application_namespace) on :"schema".aksara_operations to :"role";
